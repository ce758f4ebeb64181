package hook

import (
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/json"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// decode parses the response of a hook, which is untrusted, after each call and discovery. unread lists unknown fields,
// for the log: an extension built for a newer version of the API may send some. A response may omit apiVersion and kind
// (servers built with the reference library send neither); the returned object always has the hook's apiVersion and
// kind.
func decode(body []byte, h hooks.Hook) (response hooks.Response, unread error, err error) {
	if countValues(body, maxValues) > maxValues {
		return nil, nil, fault.New(fault.Unreachable, reasonTooLarge, "the response has more than %d values", maxValues)
	}
	response = h.NewResponse()
	strict, err := json.UnmarshalStrict(body, response)
	if err != nil {
		// Either the body is not valid JSON or a field has another type; only the kind distinguishes the two.
		if got := typeOfDocument(body); !matchesHook(got, h) {
			return nil, nil, wrongKind(got, h)
		}
		return nil, nil, fault.New(fault.Unreachable, reasonNotJSON, "the response is not a %s in JSON", h.ResponseKind()).With("cause", ClipMessage(err.Error()))
	}
	if got := typeOfResponse(response, body); !matchesHook(got, h) {
		return nil, nil, wrongKind(got, h)
	}
	h.StampResponse(response)
	response.SetMessage(ClipMessage(response.GetMessage()))
	return response, errors.Join(strict...), validateResponse(response)
}

const (
	// maxValues limits the number of JSON values in a response. Values of three bytes become objects of about a hundred
	// bytes: without a limit, 20 MiB of empty variables take more than 10 GiB of memory. Everything that fits into a
	// ClusterClass has fewer values.
	maxValues = 1 << 16
	// valueBytes approximates the memory that a decoded value needs in addition to its text.
	valueBytes = 200
)

// matchesHook reports whether apiVersion and kind of a document are each either empty or equal to the hook's response
// type.
func matchesHook(got metav1.TypeMeta, h hooks.Hook) bool {
	return (got.APIVersion == "" || got.APIVersion == h.APIVersion()) && (got.Kind == "" || got.Kind == h.ResponseKind())
}

// typeOfResponse returns apiVersion and kind as they were sent. ObjectKind alone would lose a malformed apiVersion.
func typeOfResponse(response hooks.Response, body []byte) metav1.TypeMeta {
	if sent, ok := response.GetObjectKind().(*metav1.TypeMeta); ok {
		return *sent
	}
	return typeOfDocument(body)
}

// typeOfDocument returns apiVersion and kind of a JSON document, or the zero value if the document cannot be parsed.
func typeOfDocument(body []byte) metav1.TypeMeta {
	var sent metav1.TypeMeta
	if json.UnmarshalCaseSensitivePreserveInts(body, &sent) != nil {
		return metav1.TypeMeta{}
	}
	return sent
}

func wrongKind(got metav1.TypeMeta, h hooks.Hook) error {
	return fault.New(fault.Invalid, reasonWrongKind, "the response is a %s, want %s of %s", describeType(got), h.ResponseKind(), h.APIVersion())
}

// describeType formats the type of a document for a message. At least one of apiVersion and kind is set.
func describeType(t metav1.TypeMeta) string {
	switch {
	case t.Kind == "":
		return "document of " + clip(t.APIVersion) + " without kind"
	case t.APIVersion == "":
		return clip(t.Kind) + " without apiVersion"
	}
	return clip(t.Kind) + " of " + clip(t.APIVersion)
}

const (
	// maxWord and maxMessage limit, in bytes, the text that an extension contributes to messages: names that it
	// returns, and its own messages, which appear in conditions.
	maxWord    = 128
	maxMessage = 4 << 10
)

// clip shortens and sanitizes a name from an extension for use in a message.
func clip(s string) string { return clipTo(s, maxWord) }

// ClipMessage shortens a message from an extension to a size that fits in a condition, and replaces control characters,
// which could affect the terminal that displays it. Package inplace calls it for messages of UpdateMachine.
func ClipMessage(message string) string { return clipTo(message, maxMessage) }

// clipTo shortens a text to at most the given number of bytes, at a character boundary, and replaces control characters
// other than newlines.
func clipTo(text string, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, text)
}

// validateResponse validates the status and retryAfterSeconds of a response of the right kind.
func validateResponse(response hooks.Response) error {
	switch status := response.GetStatus(); status {
	case hooksv1.ResponseStatusSuccess:
	case hooksv1.ResponseStatusFailure:
		message := response.GetMessage()
		if message == "" {
			message = "no message"
		}
		return fault.New(fault.Transient, reasonFailureResponse, "responded with status Failure: %s", message)
	case "":
		return fault.New(fault.Invalid, reasonInvalidResponse, "the response has no status; want Success or Failure")
	default:
		return fault.New(fault.Invalid, reasonInvalidResponse, "the response has status %q; want Success or Failure",
			clip(string(status)))
	}
	if retry, ok := response.(hooks.RetryResponse); ok && retry.GetRetryAfterSeconds() < 0 {
		return fault.New(fault.Invalid, reasonInvalidResponse, "the response has retryAfterSeconds %d; want 0 or more",
			retry.GetRetryAfterSeconds())
	}
	return nil
}

// aggregate merges the responses of all handlers of a hook, as Cluster API documents it: the lowest retryAfterSeconds
// that is not 0, and all messages. CallAll calls it.
func aggregate(responses []hooks.Response, into hooks.Response) {
	var messages []string
	var retry time.Duration
	for _, response := range responses {
		if text := response.GetMessage(); text != "" {
			messages = append(messages, text)
		}
		if after := retryAfter(response); after > 0 && (retry == 0 || after < retry) {
			retry = after
		}
	}
	into.SetStatus(hooksv1.ResponseStatusSuccess)
	into.SetMessage(clipTo(strings.Join(messages, ", "), 4*maxMessage))
	if r, ok := into.(hooks.RetryResponse); ok {
		r.SetRetryAfterSeconds(int32(retry / time.Second))
	}
}

// countValues approximates the number of values in a JSON document, at any depth, by the commas and opening brackets
// outside strings. It stops at the first one above the limit.
func countValues(body []byte, most int) (values int) {
	inString := false
	for i := 0; i < len(body) && values <= most; i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == ',', c == '{', c == '[':
			values++
		}
	}
	return values
}
