//! Groups of variables that a program leaves out of the environment of another.

/// Settings of the conversation's requests, which do not apply to a request for a summary.
pub const REQUEST: [&str; 8] = [
    "CLAW_SYSTEM",
    "CLAW_TOOLS",
    "CLAW_EXTRA",
    "CLAW_TEMPERATURE",
    "CLAW_EFFORT",
    "CLAW_THINKING_BUDGET",
    "CLAW_WINDOW",
    "CLAW_MAX_TOKENS",
];
/// Settings of the conversation's provider, which must not be used for other providers.
pub const PROVIDER: [&str; 7] = [
    "CLAW_KEY_FILE",
    "CLAW_KEY_CMD",
    "CLAW_BASE_URL",
    "CLAW_API",
    "CLAW_BETA",
    "CLAW_MAX_TOKENS_FIELD",
    "CLAW_INSECURE_HTTP",
];
