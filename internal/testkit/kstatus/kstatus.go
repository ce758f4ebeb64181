// Package kstatus computes the status of an object as tools that wait for objects of any kind do: Flux, Helm 4 and others read it by the rules
// of kstatus.
//
// Does: applies the rules for kinds that the library does not know ([Of]): deletion, the observed generation, then the condition Ready.
//
// Never: knows a kind.
//
// Read first: [Of].
package kstatus

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What an object is.
const (
	Current     = "Current"
	InProgress  = "InProgress"
	Terminating = "Terminating"
)

// Of returns the status of an object.
func Of(t testing.TB, o any) string {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := unstructured.Unstructured{Object: content}
	if u.GetDeletionTimestamp() != nil {
		return Terminating
	}
	if observed, found, _ := unstructured.NestedInt64(content, "status", "observedGeneration"); found && observed != u.GetGeneration() {
		return InProgress
	}
	list, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == "Ready" && c["status"] != "True" {
			return InProgress
		}
	}
	return Current
}
