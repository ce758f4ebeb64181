package extension

import (
	"runtime/debug"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// guard calls do and records a panic.
func guard(out hooksv1.ResponseObject, do func()) (r reply) {
	r.response = out
	defer func() {
		if p := recover(); p != nil {
			r.panicked, r.stack = p, debug.Stack()
		}
	}()
	do()
	return r
}
