/* The least that a program can be: what starting one costs. */
int main(void) { return 0; }
