package kstatus

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Statuses of the kstatus library.
const (
	Current     = string(status.CurrentStatus)
	InProgress  = string(status.InProgressStatus)
	failed      = string(status.FailedStatus)
	Terminating = string(status.TerminatingStatus)
)

// Compute returns the kstatus status of an object. Tests of our own kinds check with it that Flux and Helm see an
// object as ready only when it is.
func Compute(t testing.TB, o any) string {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Status)
}
