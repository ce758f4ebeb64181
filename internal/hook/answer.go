package hook

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/json"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// decode reads the answer of a hook. Unread are fields that nobody reads, for the log: an extension made for a newer
// version of the API may send some.
func decode(body []byte, h hooks.Hook) (response hooks.Response, unread error, err error) {
	response = h.NewResponse()
	strict, err := json.UnmarshalStrict(body, response)
	if err != nil {
		// Not valid at all, or a field of another type: only the kind tells the two apart.
		if kind := kindOf(body); kind != nil && *kind != wanted(h) {
			return nil, nil, wrongKind(*kind, h)
		}
		return nil, nil, fault.New(fault.Unreachable, ReasonNotJSON, "the answer is not a %s in JSON", h.ResponseKind()).With("cause", err.Error())
	}
	var kind metav1.TypeMeta
	kind.APIVersion, kind.Kind = response.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	if kind != wanted(h) {
		return nil, nil, wrongKind(kind, h)
	}
	return response, errors.Join(strict...), check(response)
}

func wanted(h hooks.Hook) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: h.APIVersion(), Kind: h.ResponseKind()}
}

// kindOf returns what a document says that it is, nil if it cannot be read.
func kindOf(body []byte) *metav1.TypeMeta {
	kind := &metav1.TypeMeta{}
	if json.UnmarshalCaseSensitivePreserveInts(body, kind) != nil {
		return nil
	}
	return kind
}

func wrongKind(got metav1.TypeMeta, h hooks.Hook) error {
	return fault.New(fault.Invalid, ReasonWrongKind, "the answer is a %s, want %s",
		describe(got), describe(wanted(h)))
}

func describe(t metav1.TypeMeta) string {
	if t.Kind == "" && t.APIVersion == "" {
		return "document without kind and apiVersion"
	}
	return clip(t.Kind) + " of " + clip(t.APIVersion)
}

// clip shortens what somebody else wrote.
func clip(s string) string {
	const most = 128
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// check says what is wrong with an answer of the right kind.
func check(response hooks.Response) error {
	switch status := response.GetStatus(); status {
	case hooksv1.ResponseStatusSuccess:
	case hooksv1.ResponseStatusFailure:
		message := clipMessage(response.GetMessage())
		if message == "" {
			message = "no message"
		}
		return fault.New(fault.Transient, ReasonAnsweredFailure, "answered Failure: %s", message)
	case "":
		return fault.New(fault.Invalid, ReasonInvalidAnswer, "the answer has no status; want Success or Failure")
	default:
		return fault.New(fault.Invalid, ReasonInvalidAnswer, "the answer has status %q; want Success or Failure",
			clip(string(status)))
	}
	if retry, ok := response.(hooks.RetryResponse); ok && retry.GetRetryAfterSeconds() < 0 {
		return fault.New(fault.Invalid, ReasonInvalidAnswer, "the answer has retryAfterSeconds %d; want 0 or more",
			retry.GetRetryAfterSeconds())
	}
	return nil
}

// clipMessage bounds messages of extensions: they end in conditions.
func clipMessage(message string) string {
	const most = 4 << 10
	if len(message) <= most {
		return message
	}
	cut := most
	for cut > 0 && message[cut]&0xC0 == 0x80 { // do not cut a rune in two
		cut--
	}
	return message[:cut] + "…"
}

// aggregate joins the answers of all handlers of a hook (RT-13).
func aggregate(answers []hooks.Response, into hooks.Response) {
	message, retry := "", int32(0)
	for _, answer := range answers {
		if text := answer.GetMessage(); text != "" && message != "" {
			message += ", " + text
		} else if text != "" {
			message = text
		}
		if r, ok := answer.(hooks.RetryResponse); ok {
			if after := r.GetRetryAfterSeconds(); after > 0 && (retry == 0 || after < retry) {
				retry = after
			}
		}
	}
	into.SetStatus(hooksv1.ResponseStatusSuccess)
	into.SetMessage(message)
	if r, ok := into.(hooks.RetryResponse); ok {
		r.SetRetryAfterSeconds(retry)
	}
}
