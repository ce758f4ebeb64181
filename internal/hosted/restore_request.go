package hosted

import (
	"encoding/json"
	"regexp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// RestoreRequest is the content of the annotation controlplane.slipway.dev/restore, in JSON.
// `slipway restore controlplane` and `slipway move` write it, and the HostedControlPlane controller parses it in each
// reconciliation. The JSON names are an API between the three.
type RestoreRequest struct {
	// ID identifies the request by its time, for example 20261125T131500Z.
	ID string `json:"id"`
	// Policy is the EtcdSnapshotPolicy whose store contains the snapshot with the name Snapshot.
	Policy   string `json:"policy"`
	Snapshot string `json:"snapshot"`
	// IdentitySecret is the name of a Secret with an age identity, if the snapshot is encrypted.
	IdentitySecret string `json:"identitySecret,omitempty"`
	// OtherCluster permits a snapshot of a Cluster with the same name but another UID.
	OtherCluster bool `json:"otherCluster,omitempty"`
}

// String returns the value of the annotation.
func (r RestoreRequest) String() string {
	text, err := json.Marshal(r)
	if err != nil { // strings and booleans can always be encoded
		panic(err)
	}
	return string(text)
}

var restoreIDPattern = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z$`)

// maxRequest limits the size of the annotation, in bytes.
const maxRequest = 2048

// parseRestore parses the annotation of a control plane. It returns nil if there is none. observe calls it.
func parseRestore(plane *hostedv1.HostedControlPlane) (*RestoreRequest, error) {
	text, ok := plane.Annotations[hostedv1.RestoreAnnotation]
	if !ok {
		return nil, nil
	}
	r := &RestoreRequest{}
	if len(text) > maxRequest || json.Unmarshal([]byte(text), r) != nil || !restoreIDPattern.MatchString(r.ID) || r.Policy == "" {
		return nil, invalidRestoreRequest()
	}
	if _, _, ok := snapshots.ParseName(r.Snapshot); !ok {
		return nil, invalidRestoreRequest()
	}
	return r, nil
}

func invalidRestoreRequest() error {
	return fault.New(fault.Invalid, "RestoreRequestInvalid", "The annotation %s cannot be read: it needs an id like 20261125T131500Z, policy and snapshot, in JSON", hostedv1.RestoreAnnotation)
}
