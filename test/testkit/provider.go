package testkit

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// ProviderObject returns an object of a provider as the core reads it: through its contract. It checks what the contracts
// of all kinds require: a Ready condition that is True for this generation, and no terminal failure.
func ProviderObject(t testing.TB, o runtime.Object) contract.Object {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	out := contract.Object{Unstructured: &unstructured.Unstructured{Object: fields}, Contract: contract.V1Beta2}
	c, ok := out.Ready().Get()
	if !ok || c.Status != metav1.ConditionTrue || c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration != out.Unstructured.GetGeneration() {
		t.Errorf("the Ready condition is %+v, found %v; want True for this generation", c, ok)
	}
	if f := out.Failure(); f != (contract.Failure{}) {
		t.Errorf("the object has a terminal failure: %+v", f)
	}
	return out
}
