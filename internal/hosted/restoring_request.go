// Package restoring prepares the restore of an etcd snapshot into a HostedControlPlane. It parses the
// annotation that requests a restore, checks whether the snapshot is suitable, and fetches it from the store
// of an EtcdSnapshotPolicy in the same namespace into the directory of the control plane. The process of the
// control plane restores the database (package plane/restore). Start at [RestoreRequest] and [Stager.Stage].
package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// RestoreRequest is the content of the restore annotation.
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

var identified = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z$`)

// maxRequest limits the size of the annotation, in bytes.
const maxRequest = 2048

// ParseRestore parses the annotation of a control plane. It returns nil if there is none.
func ParseRestore(plane *hostedv1.HostedControlPlane) (*RestoreRequest, error) {
	text, ok := plane.Annotations[hostedv1.RestoreAnnotation]
	if !ok {
		return nil, nil
	}
	r := &RestoreRequest{}
	if len(text) > maxRequest || json.Unmarshal([]byte(text), r) != nil || !identified.MatchString(r.ID) || r.Policy == "" {
		return nil, invalid()
	}
	if _, _, ok := snapshots.ParseName(r.Snapshot); !ok {
		return nil, invalid()
	}
	return r, nil
}

func invalid() error {
	return fault.New(fault.Invalid, "RestoreRequestInvalid", "The annotation %s cannot be read: it needs an id like 20261125T131500Z, policy and snapshot, in JSON", hostedv1.RestoreAnnotation)
}

// restoreStager fetches snapshots.
type restoreStager struct{ snapshots.RetrievalSource }

// restoreOrder is a snapshot to fetch.
type restoreOrder struct {
	Request RestoreRequest
	Cluster snapshots.Cluster
	// Config is the configuration of the control plane.
	Config processconfig.Config
	Folder processconfig.Folder
}

// Stage fetches the snapshot into the directory of its control plane, together with the restore request for
// the next process. It rejects an unsuitable snapshot before fetching it.
func (s restoreStager) Stage(ctx context.Context, o restoreOrder) error {
	m, err := s.Find(ctx, o.Cluster, snapshots.RetrievalWanted{
		Policy: o.Request.Policy, Snapshot: o.Request.Snapshot, IdentitySecret: o.Request.IdentitySecret, OtherCluster: o.Request.OtherCluster,
	})
	if err != nil {
		return err
	}
	if err := check(m.Manifest, o); err != nil {
		return err
	}
	if err := emptyFolder(o.Folder); err != nil {
		return err
	}
	if err := m.Fetch(ctx, o.Folder.RestoreSnapshot()); err != nil {
		return err
	}
	return o.Folder.WriteRestoreRequest(processconfig.Restore{
		ID: o.Request.ID, Snapshot: m.Name, Version: m.Kubernetes, EncryptionKeys: m.EncryptionKeys, Revision: m.Revision,
	})
}

// emptyFolder creates a new directory for the snapshot. It never uses an existing one, because the process of
// the control plane can run as another user, which must not be able to redirect the writes with a symbolic
// link.
func emptyFolder(f processconfig.Folder) error {
	return errors.Join(os.RemoveAll(f.Restoring()), os.MkdirAll(string(f), 0o700), os.Mkdir(f.Restoring(), 0o700))
}

// check rejects a snapshot that the control plane could not run with.
func check(m snapshots.Manifest, o restoreOrder) error {
	data := processconfig.Data{Exists: true, Version: m.Kubernetes, EncryptionKeys: m.EncryptionKeys}
	if err := data.KeysProblem(o.Config.EncryptionKeys, ""); err != nil {
		return err
	}
	return data.Problem(o.Config.Version)
}
