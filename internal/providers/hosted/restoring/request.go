// Package restoring is what a HostedControlPlane knows of the restore of a snapshot.
//
// Does: reads the annotation that asks for one, fetches the snapshot from the store of an EtcdSnapshotPolicy of the same
// namespace into the folder of the control plane, and checks beforehand what can be checked.
//
// Never: opens the database, or restores it: the process of the control plane does (package plane/restore).
//
// Read first: [Request], then [Stager.Stage].
package restoring

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/snapshots/retrieval"
)

// Request is what the annotation asks for.
type Request struct {
	// ID tells it from every other request: the time of it, as 20261125T131500Z.
	ID string `json:"id"`
	// Policy is the EtcdSnapshotPolicy whose store has the snapshot, Snapshot its name.
	Policy   string `json:"policy"`
	Snapshot string `json:"snapshot"`
	// IdentitySecret is the name of a Secret with an identity of age, where the snapshot is encrypted.
	IdentitySecret string `json:"identitySecret,omitempty"`
	// OtherCluster allows a snapshot of a Cluster of the same name that had another UID.
	OtherCluster bool `json:"otherCluster,omitempty"`
}

// String is the value of the annotation.
func (r Request) String() string {
	text, err := json.Marshal(r)
	if err != nil { // strings always encode
		panic(err)
	}
	return string(text)
}

var identified = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z$`)

// maxRequest bounds the annotation, in bytes.
const maxRequest = 2048

// Parse reads the annotation of a control plane; nil: there is none.
func Parse(plane *hostedv1.HostedControlPlane) (*Request, error) {
	text, ok := plane.Annotations[hostedv1.RestoreAnnotation]
	if !ok {
		return nil, nil
	}
	r := &Request{}
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

// Stager fetches snapshots.
type Stager struct{ retrieval.Source }

// Order is a snapshot to fetch.
type Order struct {
	Request Request
	Cluster snapshots.Cluster
	// Config is how the control plane runs, or is to run.
	Config workload.Config
	Folder workload.Folder
}

// Stage fetches the snapshot of an order into the folder of its control plane, with what the next process is to do with it.
// What cannot be restored there is refused before it is fetched.
func (s Stager) Stage(ctx context.Context, o Order) error {
	m, err := s.Find(ctx, o.Cluster, retrieval.Wanted{
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
	return o.Folder.WriteRestoreRequest(workload.Restore{
		ID: o.Request.ID, Snapshot: m.Name, Version: m.Kubernetes, EncryptionKeys: m.EncryptionKeys, Revision: m.Revision,
	})
}

// emptyFolder makes the folder that the snapshot is put into. It is one that was not there before: where the process of the control plane is
// another user, that one does not decide what it leads to.
func emptyFolder(f workload.Folder) error {
	return errors.Join(os.RemoveAll(f.Restoring()), os.MkdirAll(string(f), 0o700), os.Mkdir(f.Restoring(), 0o700))
}

// check refuses a snapshot that the control plane could not run with.
func check(m snapshots.Manifest, o Order) error {
	data := workload.Data{Exists: true, Version: m.Kubernetes, EncryptionKeys: m.EncryptionKeys}
	if err := data.KeysProblem(o.Config.EncryptionKeys, ""); err != nil {
		return err
	}
	return data.Problem(o.Config.Version)
}
