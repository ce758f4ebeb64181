package extension

import (
	"math"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Fail makes a response say that the hook failed, with the text of err as the message that users see: the same for the
// same problem, without times, counters and secrets. A nil err changes nothing.
func Fail(out hooksv1.ResponseObject, err error) {
	if err != nil {
		fail(out, err.Error())
	}
}

// Hold makes a response hold the caller back and call again after a time, counted in whole seconds, one at least. The message
// says to users what the cluster waits for.
func Hold(out hooksv1.RetryResponseObject, after time.Duration, message string) {
	seconds := math.Ceil(after.Seconds())
	out.SetStatus(hooksv1.ResponseStatusSuccess)
	out.SetMessage(message)
	out.SetRetryAfterSeconds(int32(min(max(seconds, 1), math.MaxInt32)))
}

func fail(r hooksv1.ResponseObject, message string) {
	r.SetStatus(hooksv1.ResponseStatusFailure)
	r.SetMessage(message)
	if retry, ok := r.(hooksv1.RetryResponseObject); ok {
		retry.SetRetryAfterSeconds(0)
	}
}
