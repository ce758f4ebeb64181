package kube

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/fault"
)

// maxRefusals is the maximum number of different causes, in the order of their messages.
const maxRefusals = 3

// maxRefusalLength is the maximum length of a message from the API server, in characters: webhooks may return any text.
const maxRefusalLength = 400

// FailureMessages returns a message for each cause of a failed write, sorted, and stable as long as the writes fail in
// the same way, because each change of a condition or event is another write. Controllers include the messages in
// conditions and events. names are names of objects that change with each attempt; they are replaced in the messages.
// Rejections by the API server are quoted. The texts of other failures may vary, so only their kind is included.
func FailureMessages(err error, names ...string) []string {
	var out []string
	collect(err, func(cause error) { out = append(out, withoutNames(refusal(cause), names)) })
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxRefusals)]
}

// collect calls f for each cause in a tree of joined and wrapped errors.
func collect(err error, f func(error)) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			collect(e, f)
		}
		return
	}
	_, isFault := err.(*fault.Fault)
	_, isStatus := err.(apierrors.APIStatus)
	if inner := errors.Unwrap(err); inner != nil && !isFault && !isStatus && fault.KindOf(inner) == fault.KindOf(err) {
		collect(inner, f)
		return
	}
	if err != nil {
		f(err)
	}
}

func refusal(err error) string {
	if f := fault.As(err); f != nil {
		return f.Message
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		said := status.Status()
		switch said.Reason {
		case metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonNotFound,
			metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists, metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonMethodNotAllowed:
			return said.Message
		case metav1.StatusReasonUnknown:
			return "the API server reports an error"
		case metav1.StatusReasonInternalError:
			if problem, found := webhookProblem(said.Message); found {
				return problem
			}
		}
		return "the API server reports " + string(said.Reason)
	}
	if fault.KindOf(err) == fault.Unreachable {
		return "the API server does not answer"
	}
	return "an unexpected error, which is in the log"
}

// webhookForm matches the name of an admission webhook that the API server could not call.
var webhookForm = regexp.MustCompile(`failed calling webhook "([A-Za-z0-9][A-Za-z0-9.-]{0,252})": `)

// webhookCauses returns the texts of errors of a webhook's server that are included in messages. The rest of such an error
// has addresses and times, which change with each attempt.
func webhookCauses() []string {
	return []string{
		"connection refused", "connection reset by peer", "no route to host", "network is unreachable", "no such host", "i/o timeout", "context deadline exceeded",
		"no endpoints available for service", "certificate has expired or is not yet valid", "certificate signed by unknown authority",
		"certificate is not valid for any names", "certificate is valid for", "server gave HTTP response to HTTPS client",
		"the server could not find the requested resource", "EOF",
	}
}

// webhookProblem returns the name of the webhook in a message of the API server, with the kind of its error. The name
// leads to the configuration of the webhook, which no other object refers to.
func webhookProblem(message string) (string, bool) {
	found := webhookForm.FindStringSubmatchIndex(message)
	if found == nil {
		return "", false
	}
	cause, rest := "the log of the manager has the error", message[found[1]:]
	if i := slices.IndexFunc(webhookCauses(), func(known string) bool { return strings.Contains(rest, known) }); i >= 0 {
		cause = webhookCauses()[i]
	}
	return message[found[0]:found[1]] + cause, true
}

// withoutNames replaces the names in a message, and converts it to one line of limited length.
func withoutNames(sentence string, names []string) string {
	for _, name := range names {
		sentence = strings.ReplaceAll(sentence, ` "`+name+`"`, "")
		sentence = strings.ReplaceAll(sentence, name, "NAME")
	}
	sentence = strings.Join(strings.FieldsFunc(sentence, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(sentence); len(runes) > maxRefusalLength {
		sentence = string(runes[:maxRefusalLength]) + " …"
	}
	return sentence
}
