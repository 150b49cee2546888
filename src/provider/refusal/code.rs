//! The error types and codes that determine a class.
//!
//! A row is a type or code as it stands in `error.type`, `error.code`, `error.status` or, for Anthropic,
//! `error.details.error_code`. The groups of rows name the official packages, with version and date, from whose types
//! they were read; the others are used by the servers that the comments name. A code that is not in the table decides
//! nothing.

use super::FailureClass::{
    self, Auth, BadRequest, Billing, NotFound, Overflow, Overloaded, Permission, RateLimit, Server,
    TooLarge,
};
use crate::fault::Fault;

/// A type or code and its meaning.
pub(super) struct Code {
    /// The name of the rule: `type-` and the type or code.
    pub(super) rule: &'static str,
    pub(super) class: FailureClass,
    /// The fault, if it differs from that of the class.
    pub(super) fault: Option<Fault>,
}

impl Code {
    /// Returns the type or code.
    pub(super) fn word(&self) -> &'static str {
        self.rule.strip_prefix("type-").unwrap_or(self.rule)
    }
}

const fn code(rule: &'static str, class: FailureClass) -> Code {
    Code { rule, class, fault: None }
}

/// Returns the row of a code for a content block that the provider rejects.
const fn block(rule: &'static str) -> Code {
    Code { rule, class: BadRequest, fault: Some(Fault::Block) }
}

/// All types and codes, in the order in which they are tried: the account and the rate first, then the size, then the
/// content. `invalid_request_error` and the like are too general to be included.
pub(super) const CODES: &[Code] = &[
    code("type-insufficient_quota", Billing),
    code("type-billing_error", Billing),
    code("type-billing_hard_limit_reached", Billing),
    // openai 3.57.0 (types/beta/session_turn_error.py), 2026-11-27
    code("type-billing_not_active", Billing),
    code("type-credit_balance_exhausted", Billing),
    code("type-usage_limit_exceeded", Billing),
    code("type-project_spend_limit_exceeded", Billing),
    code("type-organization_spend_limit_exceeded", Billing),
    code("type-organization_usage_limit_exceeded", Billing),
    // anthropic 2.14.0 (types/*_error_details.py, types/shared), 2026-11-27
    code("type-contract_spend_limit_reached", Billing),
    code("type-enforced_spend_limit_reached", Billing),
    code("type-linked_organization_billing_unavailable", Billing),
    code("type-linked_organization_spend_limit_reached", Billing),
    code("type-user_profile_not_billable", Billing),
    code("type-user_profile_billing_not_authorized", Billing),
    // Moonshot; Z.ai's numbers for an account without balance, a used-up package or an expired plan
    code("type-exceeded_current_quota_error", Billing),
    code("type-1113", Billing),
    code("type-1308", Billing),
    code("type-1309", Billing),
    code("type-1310", Billing),
    code("type-1311", Billing),
    code("type-1312", Billing),
    code("type-1313", Billing),
    code("type-1314", Billing),
    code("type-authentication_error", Auth),
    code("type-invalid_api_key", Auth),
    code("type-permission_error", Permission),
    code("type-organization_on_hold", Permission),
    code("type-rate_limit_error", RateLimit),
    code("type-rate_limit_exceeded", RateLimit),
    code("type-ramp_limit_exceeded", RateLimit),
    code("type-RESOURCE_EXHAUSTED", RateLimit),
    code("type-ThrottlingException", RateLimit),
    // Bedrock's exceptions in a stream, whose names begin with a small letter there (Amazon's reference of
    // InvokeModelWithResponseStream, 2026-11-28)
    code("type-throttlingException", RateLimit),
    code("type-serviceUnavailableException", Overloaded),
    code("type-internalServerException", Server),
    code("type-modelStreamErrorException", Server),
    code("type-modelTimeoutException", Server),
    code("type-overloaded_error", Overloaded),
    code("type-engine_overloaded_error", Overloaded),
    code("type-unavailable_error", Overloaded),
    // openai 3.57.0 (types/beta/session_turn_error.py), 2026-11-27
    code("type-server_overloaded", Overloaded),
    code("type-flex_unavailable", Overloaded),
    code("type-context_length_exceeded", Overflow),
    code("type-context_window_exceeded", Overflow),
    code("type-exceed_context_size_error", Overflow),
    code("type-model_context_window_exceeded", Overflow),
    code("type-tokens_limit_reached", Overflow),
    code("type-OutofContextError", Overflow),
    // Z.ai: "Prompt exceeds max length"
    code("type-1261", Overflow),
    code("type-request_too_large", TooLarge),
    // anthropic 2.14.0, 2026-11-27: both say that the body must become smaller
    code("type-request_body_timeout", TooLarge),
    code("type-request_body_too_large_after_decoding", TooLarge),
    block("type-image_dimensions_too_large"),
    block("type-file_expired"),
    block("type-compaction_block_ambiguous"),
    block("type-compaction_block_misplaced"),
    block("type-compaction_content_mismatch"),
    block("type-compaction_signature_invalid"),
    block("type-compaction_tool_changes_mismatch"),
    // openai 3.57.0 (types/responses/response_error.py), 2026-11-27
    block("type-invalid_image"),
    block("type-invalid_image_format"),
    block("type-invalid_base64_image"),
    block("type-invalid_image_url"),
    block("type-image_too_large"),
    block("type-image_too_small"),
    block("type-image_parse_error"),
    block("type-image_content_policy_violation"),
    block("type-invalid_image_mode"),
    block("type-image_file_too_large"),
    block("type-unsupported_image_media_type"),
    block("type-empty_image_file"),
    block("type-failed_to_download_image"),
    block("type-image_file_not_found"),
    // A string anywhere in the request: the place says whether it is a block.
    code("type-string_above_max_length", BadRequest),
    code("type-not_found_error", NotFound),
    code("type-model_not_found", NotFound),
    code("type-api_error", Server),
    code("type-server_error", Server),
    code("type-timeout_error", Server),
    // anthropic 2.14.0, 2026-11-27: the same request may succeed
    code("type-compaction_unavailable", Server),
    code("type-cmek_key_unreachable", Server),
    code("type-cmek_context_unavailable", Server),
    code("type-change_outcome_unknown", Server),
];
