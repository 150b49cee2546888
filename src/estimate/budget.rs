//! How a window is divided: prompt, answer, margin, reserve.

/// The part of the window that is kept free for what an estimate gets wrong: one part in twenty, the
/// most by which the estimate may be under.
const MARGIN: u64 = 20;

/// A window, divided. All numbers are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most that the model accepts, prompt and answer.
    pub window: u64,
    /// Room for the answer.
    pub output: u64,
    /// Room for what the estimate gets wrong.
    pub margin: u64,
    /// What a prompt leaves free before compaction sets in by itself.
    pub reserve: u64,
}

impl Budget {
    /// Divides `window`. Room for the answer is by default the smaller of 8096 and a quarter of the
    /// window; the reserve the smaller of 30000 and 15 % of it.
    ///
    /// # Errors
    /// Says the arithmetic when nothing is left for the prompt.
    pub fn new(window: u64, output: Option<u64>, reserve: Option<u64>) -> Result<Budget, String> {
        let output = output.unwrap_or(default_output(window));
        let reserve = reserve.unwrap_or((window * 15 / 100).min(30_000));
        let margin = window / MARGIN;
        if output + margin >= window {
            return Err(format!(
                "nothing is left for the prompt: window {window} - answer {output} - margin {margin}; give a larger window or a smaller --max-tokens"
            ));
        }
        if reserve >= window {
            return Err(format!(
                "nothing is left for the prompt: window {window} - reserve {reserve}; give a larger window or a smaller --reserve"
            ));
        }
        Ok(Budget { window, output, margin, reserve })
    }

    /// The most that a prompt may be, by estimate.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.window - self.output - self.margin
    }

    /// The estimate from which on compaction sets in by itself.
    #[must_use]
    pub fn trigger(&self) -> u64 {
        self.window - self.reserve
    }

    /// What a compaction has to get below: a prompt that fits and that does not set off the next one.
    #[must_use]
    pub fn target(&self) -> u64 {
        self.prompt().min(self.trigger().saturating_sub(1))
    }
}

/// Room for the answer when nobody says: the smaller of 8096 and a quarter of the window (tokens).
#[must_use]
pub fn default_output(window: u64) -> u64 {
    (window / 4).clamp(1, 8096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v47_defaults_scale_with_the_window() {
        let mut before = 0;
        for window in [4096, 8192, 16_384, 200_000, 1_000_000] {
            let budget = Budget::new(window, None, None).unwrap();
            assert!(budget.prompt() > before && budget.target() < budget.trigger());
            before = budget.prompt();
        }
        let large = Budget::new(200_000, None, None).unwrap();
        assert_eq!((large.output, large.margin, large.reserve), (8096, 10_000, 30_000));
    }

    #[test]
    fn a_window_without_room_says_its_arithmetic() {
        let why = Budget::new(8000, Some(8000), None).unwrap_err();
        let arithmetic = "nothing is left for the prompt: window 8000 - answer 8000 - margin 400; ";
        assert!(why.starts_with(arithmetic), "{why}");
        assert!(Budget::new(8000, None, Some(8000)).is_err());
        assert!(Budget::new(0, None, None).is_err());
    }
}
