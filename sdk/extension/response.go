package extension

import (
	"math"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Fail sets the response status to Failure, with err as the message for users. The message must be the same for the
// same problem, without times, counters and secrets. A nil err changes nothing.
func Fail(out hooksv1.ResponseObject, err error) {
	if err != nil {
		fail(out, err.Error())
	}
}

// Hold makes the response block the caller, which calls again after a delay in whole seconds, at least one. The message
// explains to users what the cluster waits for.
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
