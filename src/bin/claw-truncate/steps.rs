//! Chooses the step: the fault of the refused request decides, and without a refusal the limits of the next one.

use crate::Args;
use crate::output::Aim;
use clawutils::cli::{Log, now};
use clawutils::cost::cold;
use clawutils::estimate::bytes::{self, ByteLimit};
use clawutils::estimate::{Gauge, Refused, Request};
use clawutils::exit::{Exit, fail};
use clawutils::fault::Fault;
use clawutils::messages::Message;
use clawutils::truncate::aged::shorten_aged;
use clawutils::truncate::body::{self, ShrinkOptions};
use clawutils::truncate::{self, TruncateOptions, TruncateOutcome, block};

/// The request, and how it was refused.
pub struct Steps<'s> {
    pub args: &'s Args,
    pub refused: Option<&'s Refused>,
    /// The request without its messages.
    pub beside: Request<'s, 's>,
    pub gauge: Gauge,
}

impl Steps<'_> {
    /// Makes the step, and returns its outcome and the limits that the request must keep.
    ///
    /// # Errors
    /// Fails with 5 if no step can cure the refusal, and with 78 if the window is unknown but needed.
    pub fn run(
        &self,
        messages: &mut Vec<Message<'_>>,
        log: Log,
    ) -> anyhow::Result<(TruncateOutcome, Aim)> {
        let Steps { beside, gauge, .. } = *self;
        if self.args.if_cold {
            return self.shorten_aged(messages);
        }
        let Some(refused) = self.refused else { return self.fit(messages, log) };
        match refused.fault {
            Fault::Wait | Fault::Other => {
                fail(Exit::NoGain, "nothing changed: a smaller request would be refused too")
            }
            Fault::Block => {
                let outcome = block::leave_out(messages, beside, gauge, refused);
                Ok((outcome, Aim::Block))
            }
            Fault::Bytes => {
                let now = bytes::of(Request { messages, ..beside });
                let target = self.args.model.refused_body(self.refused)?.target(now);
                let outcome = body::shrink(messages, beside, gauge, self.shrink_options(target));
                Ok((outcome, Aim::Bytes(target)))
            }
            Fault::Tokens => self.fit(messages, log),
        }
    }

    /// Returns the options for a target in bytes.
    fn shrink_options(&self, target: u64) -> ShrinkOptions {
        let (own, usual) = (&self.args.limits, ShrinkOptions::new(target));
        let floor_chars = own.floor.unwrap_or(usual.floor_chars);
        ShrinkOptions { floor_chars, head_ratio: own.head_ratio, ..usual }
    }

    /// Shortens old results if the prompt cache has expired. Without a known window, nothing is changed.
    fn shorten_aged(&self, messages: &mut [Message<'_>]) -> anyhow::Result<(TruncateOutcome, Aim)> {
        let Steps { args, beside, gauge, .. } = *self;
        let lifetime = args.cache.lifetime();
        let now = now()?;
        let is_cold = lifetime.is_some_and(|lifetime| cold::is_cold(messages, lifetime, now));
        let budget = if is_cold { args.budget.budget(&args.model, None)? } else { None };
        let outcome = budget.map(|it| shorten_aged(messages, beside, gauge, it.window));
        Ok((outcome.unwrap_or_default(), Aim::Limits(None, None)))
    }

    /// Brings the request under the documented or learned limit in bytes, if it exceeds that, and then within its
    /// budget of tokens.
    fn fit(
        &self,
        messages: &mut Vec<Message<'_>>,
        log: Log,
    ) -> anyhow::Result<(TruncateOutcome, Aim)> {
        let Steps { args, refused, beside, gauge } = *self;
        let now = bytes::of(Request { messages, ..beside });
        let limit = args.model.byte_limit()?.filter(|limit| !limit.fits(now));
        let shrink = |target| body::shrink(messages, beside, gauge, self.shrink_options(target));
        let shrunk = limit.map(ByteLimit::target).map(shrink);
        let budget = match shrunk {
            Some(_) => args.budget.budget(&args.model, refused)?,
            None => Some(args.budget.known_budget(&args.model, refused)?),
        };
        let aim = Aim::Limits(budget, limit.map(ByteLimit::most));
        let Some(budget) = budget else { return Ok((shrunk.unwrap_or_default(), aim)) };
        log.unused_count(gauge.unused());
        let own = &args.limits;
        let mut options = TruncateOptions::new(budget.window, own.max_fraction, budget.prompt());
        options.head_ratio = own.head_ratio;
        options.min_gain = own.min_gain;
        options.floor_chars = own.floor.unwrap_or(options.floor_chars);
        let fitted = truncate::truncate(messages, beside, gauge, options);
        let outcome = match shrunk {
            Some(shrunk) => shrunk.then(fitted),
            None => fitted,
        };
        Ok((outcome, aim))
    }
}
