package remediation

import (
	"encoding/json"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Record is what is remembered of a remediation, as annotations hold it.
type Record struct {
	// Machine that was replaced; of several retries the first.
	Machine string `json:"machine"`
	// Timestamp is when the last of them was.
	Timestamp time.Time `json:"timestamp"`
	// RetryCount counts the replacements of replacements.
	RetryCount int `json:"retryCount"`
}

// Text is the value of the annotation.
func (r Record) Text() string {
	data, err := json.Marshal(Record{Machine: r.Machine, Timestamp: r.Timestamp.UTC(), RetryCount: r.RetryCount})
	if err != nil {
		return "" // a struct of a text, a time and a number can be encoded
	}
	return string(data)
}

// InProgress is the record on a control plane; false: none that can be read.
func InProgress(plane client.Object) (Record, bool) {
	return parse(plane.GetAnnotations()[controlplanev1.RemediationInProgressAnnotation])
}

// For is the record on a Machine that replaces another; false: it replaces none.
func For(machine client.Object) (Record, bool) {
	return parse(machine.GetAnnotations()[controlplanev1.RemediationForAnnotation])
}

func parse(text string) (Record, bool) {
	r := Record{}
	if text == "" || json.Unmarshal([]byte(text), &r) != nil || r.Machine == "" {
		return Record{}, false
	}
	return r, true
}
