//! What the programs under test inherit from this process besides their environment: which signals are ignored, the file
//! mode mask and limits on resources. All are set to fixed values once, so that the tests do not depend on the shell that
//! started them.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit, setrlimit, umask};
use signal_hook::consts::FORBIDDEN;

/// The number of files that a program under test may open, if the hard limit allows it.
const FILES: u64 = 4096;

/// Sets them, on the first call.
pub fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        umask(Mode::from_raw_mode(0o022));
        ignored_signals().for_each(catch);
        for resource in [Resource::Fsize, Resource::Cpu, Resource::As, Resource::Data] {
            limit(resource, None);
        }
        limit(Resource::Nofile, Some(FILES));
        limit(Resource::Core, Some(0));
    });
}

/// Returns the numbers of the signals that this process ignores. nohup, and shells without job control for commands in
/// the background, start programs with such signals.
fn ignored_signals() -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..32).filter(move |signal| (mask >> (signal - 1)) & 1 == 1)
}

/// Catches a signal instead of ignoring it, which has the same effect here. A caught signal, unlike an ignored one, has its
/// default effect in a program that this process starts.
fn catch(signal: i32) {
    if !FORBIDDEN.contains(&signal) {
        let caught = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, caught).expect("a signal to catch");
    }
}

/// Sets a soft limit to `value`, or to the hard limit if that is lower or `value` is `None`.
fn limit(resource: Resource, value: Option<u64>) {
    let mut limit = getrlimit(resource);
    limit.current = match (value, limit.maximum) {
        (Some(value), Some(most)) => Some(value.min(most)),
        (value, most) => value.or(most),
    };
    setrlimit(resource, limit).expect("a soft limit up to the hard limit");
}

mod tests {
    use std::env;

    use super::super::{AssertExt, Sandbox};

    #[test]
    fn programs_inherit_fixed_values() {
        let script = "umask; ulimit -c; sed -n 's/^SigIgn:\t//p' /proc/self/status";
        let lines = Sandbox::new().sh(script).assert().success().lines();
        assert_eq!(lines[..2], ["0022", "0"]);
        let ignored = u64::from_str_radix(&lines[2], 16).expect("a mask");
        // The C library uses signals from 32 on itself.
        assert_eq!(ignored & 0x7fff_ffff, 0, "{lines:?}");
    }

    /// nohup, a shell without job control and a CI runner start the tests with other values.
    #[test]
    fn tests_do_not_depend_on_what_they_inherit() {
        const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM CHLD && umask 000 && ulimit -n 64 && ulimit -c unlimited
exec "$SELF" --exact "$@" <&-"#;
        let own = env::current_exe().expect("the path of this test");
        let sandbox = Sandbox::new();
        let elsewhere = sandbox.write("別の 場所/file", "");
        let mut cmd = sandbox.sh(SCRIPT).env("SELF", own).env("LC_ALL", "C");
        cmd = cmd.env("TMPDIR", elsewhere.parent().expect("a directory"));
        cmd = cmd.envs(env::var_os("CLAW_PROGRAMS").map(|path| ("CLAW_PROGRAMS", path)));
        cmd.arg("sh")
            .arg("common::isolation::tests::programs_inherit_fixed_values")
            .arg("deadlines::audit_12_children_can_read_the_terminal_and_are_ended_too")
            .arg("append::v7_a_full_disk_leaves_the_file_unchanged")
            .assert()
            .success();
    }
}
