package belljar

import "fmt"

// Refusal says that we chose not to run, and why. It is an error so that parts
// can return it, and the surfaces show it as data.
type Refusal struct {
	Code   Code   `json:"code"`
	Reason string `json:"reason"` // fit for a stranger
	Hint   string `json:"hint"`   // the next step
}

func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Reason
	}
	return r.Reason + " " + r.Hint
}

// Refuse makes a Refusal.
func Refuse(code Code, hint, reason string, args ...any) *Refusal {
	return &Refusal{Code: code, Reason: fmt.Sprintf(reason, args...), Hint: hint}
}

// Code is a stable name for a reason to refuse. Codes are only ever added.
type Code string

const (
	CodeBadRequest      Code = "bad_request"
	CodeEmptySource     Code = "empty_source"
	CodeSourceTooLarge  Code = "source_too_large"
	CodeBadLimit        Code = "bad_limit"
	CodeBadFileName     Code = "bad_file_name"
	CodeBadEnv          Code = "bad_env"
	CodeUnknownLanguage Code = "unknown_language"
	CodeNoToolchain     Code = "no_toolchain"
	CodeIsolation       Code = "isolation_unavailable"
	CodeNetwork         Code = "network_unavailable"
	CodePolicyDenied    Code = "policy_denied"
	CodeConsentNobody   Code = "consent_nobody"
	CodeBusy            Code = "busy"
	CodeAudit           Code = "audit_unavailable"
	CodeScreening       Code = "screening"
	CodeBadConfig       Code = "bad_config"
)

// CodeInfo is what the surfaces make of a code.
type CodeInfo struct {
	HTTP int    // status of the HTTP API
	Exit int    // exit code of `belljar run`
	Doc  string // anchor in docs/refusals.md
}

// Codes is the one table of refusal codes.
var Codes = map[Code]CodeInfo{
	CodeBadRequest:      {400, 126, "bad-request"},
	CodeEmptySource:     {422, 126, "empty-source"},
	CodeSourceTooLarge:  {413, 126, "source-too-large"},
	CodeBadLimit:        {422, 126, "bad-limit"},
	CodeBadFileName:     {422, 126, "bad-file-name"},
	CodeBadEnv:          {422, 126, "bad-env"},
	CodeUnknownLanguage: {422, 126, "unknown-language"},
	CodeNoToolchain:     {422, 127, "no-toolchain"},
	CodeIsolation:       {503, 126, "isolation-unavailable"},
	CodeNetwork:         {422, 126, "network-unavailable"},
	CodePolicyDenied:    {403, 126, "policy-denied"},
	CodeConsentNobody:   {403, 126, "consent-nobody"},
	CodeBusy:            {429, 126, "busy"},
	CodeAudit:           {503, 126, "audit-unavailable"},
	CodeScreening:       {422, 126, "screening"},
	CodeBadConfig:       {500, 126, "bad-config"},
}
