//! The limits within the context window: the answer, the margin, and the reserve that triggers compaction.

/// The ratio of the window to the margin. The margin is 5 % of the window, in case the estimate is too low.
const WINDOW_PER_MARGIN: u64 = 20;

/// A context window and the limits within it, all in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The model's limit for prompt and answer together.
    pub window: u64,
    /// The maximum length of the answer.
    pub output: u64,
    /// Tokens that are kept free because the estimate may be too low.
    pub margin: u64,
    /// Space to keep free: automatic compaction starts when the prompt reaches into it.
    pub reserve: u64,
}

impl Budget {
    /// Computes the limits within `window`. By default the answer gets 8096 tokens or a quarter of the window,
    /// whichever is smaller, and the reserve 30000 tokens or 15 % of the window, whichever is smaller.
    ///
    /// # Errors
    /// Fails if nothing is left for the prompt; the message shows the arithmetic.
    pub fn new(window: u64, output: Option<u64>, reserve: Option<u64>) -> Result<Budget, String> {
        let output = output.unwrap_or(default_output(window));
        let reserve = reserve.unwrap_or(window.min(200_000) * 15 / 100);
        let margin = window / WINDOW_PER_MARGIN;
        if output.saturating_add(margin) >= window {
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

    /// Returns the largest estimate that a prompt may have.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.window - self.output - self.margin
    }

    /// Returns the largest estimate that fits beside the answer if the estimate is not too low: there is no margin.
    #[must_use]
    pub fn without_margin(&self) -> u64 {
        self.window - self.output
    }

    /// Returns the estimate at which automatic compaction starts.
    #[must_use]
    pub fn trigger(&self) -> u64 {
        self.window - self.reserve
    }

    /// Returns the largest estimate that a compaction may leave: the prompt fits and does not trigger the
    /// next compaction.
    #[must_use]
    pub fn target(&self) -> u64 {
        self.prompt().min(self.trigger().saturating_sub(1))
    }
}

/// Returns the default maximum length of the answer, in tokens: 8096 or a quarter of the window, whichever is smaller.
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
        assert_eq!(Budget::new(u64::MAX, None, None).unwrap().reserve, 30_000);
    }

    #[test]
    fn the_error_for_a_window_without_room_shows_the_arithmetic() {
        let why = Budget::new(8000, Some(8000), None).unwrap_err();
        let arithmetic = "nothing is left for the prompt: window 8000 - answer 8000 - margin 400; ";
        assert!(why.starts_with(arithmetic), "{why}");
        assert!(Budget::new(8000, None, Some(8000)).is_err());
        assert!(Budget::new(0, None, None).is_err());
        assert!(Budget::new(8000, Some(u64::MAX), None).is_err());
    }
}
