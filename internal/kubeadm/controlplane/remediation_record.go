package controlplane

import (
	"encoding/json"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/machines"
)

// remediationRecord describes a remediation. It is stored as JSON in an annotation of the KubeadmControlPlane until the
// replacement exists, and in an annotation of the replacement afterwards, so that retries are counted across restarts.
// The JSON is the format of the reference implementation and must stay.
type remediationRecord struct {
	// Machine that was replaced. After retries, it is the first one.
	Machine string `json:"machine"`
	// Timestamp is the time of the last replacement.
	Timestamp time.Time `json:"timestamp"`
	// RetryCount counts the replacements of replacements.
	RetryCount int `json:"retryCount"`
}

// Text returns the value of the annotation.
func (r remediationRecord) Text() string {
	data, err := json.Marshal(remediationRecord{Machine: r.Machine, Timestamp: r.Timestamp.UTC(), RetryCount: r.RetryCount})
	if err != nil {
		return "" // text, times and numbers can always be encoded
	}
	return string(data)
}

// remediationInProgress returns the record on a control plane, or false if there is no valid one.
func remediationInProgress(plane client.Object) (remediationRecord, bool) {
	return parseRemediationRecord(plane.GetAnnotations()[controlplanev1.RemediationInProgressAnnotation])
}

// remediationFor returns the record on a Machine that replaces another one, or false.
func remediationFor(machine client.Object) (remediationRecord, bool) {
	return parseRemediationRecord(machine.GetAnnotations()[controlplanev1.RemediationForAnnotation])
}

func parseRemediationRecord(text string) (remediationRecord, bool) {
	r := remediationRecord{}
	if text == "" || json.Unmarshal([]byte(text), &r) != nil || r.Machine == "" || r.RetryCount < 0 || r.RetryCount > math.MaxInt32 {
		return remediationRecord{}, false
	}
	return r, r.Text() != "" // a time that cannot be encoded invalidates the record
}

// lastRemediation returns the last remediation of a control plane: the one in progress, or the newest one recorded on
// its Machines. report writes it to status.lastRemediation.
func lastRemediation(plane *controlplanev1.KubeadmControlPlane, ms machines.OwnedMachines) controlplanev1.LastRemediationStatus {
	last, found := remediationInProgress(plane)
	if !found {
		for _, m := range ms {
			if r, ok := remediationFor(m.Machine); ok && (!found || r.Timestamp.After(last.Timestamp)) {
				last, found = r, true
			}
		}
	}
	if !found {
		return plane.Status.LastRemediation
	}
	return controlplanev1.LastRemediationStatus{
		Machine: last.Machine, Time: metav1.NewTime(last.Timestamp.UTC()), RetryCount: new(int32(last.RetryCount)),
	}
}
