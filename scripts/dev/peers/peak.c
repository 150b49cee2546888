/* Runs a program with its output to /dev/null, and prints its peak memory in KiB. The peak includes the memory of the
 * process that starts the program, so this process must be small. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	pid_t child;
	int status;

	if (argc < 2)
		return 64;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&child, argv[1], &actions, NULL, argv + 1, environ) != 0)
		return 127;
	if (wait4(child, &status, 0, &usage) != child || status != 0)
		return 1;
	printf("%ld\n", usage.ru_maxrss);
	return 0;
}
