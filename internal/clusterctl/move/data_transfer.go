package move

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

const (
	// dataPollInterval is the polling interval.
	dataPollInterval = time.Second
	// snapshotTimeout is the timeout for taking or restoring a snapshot, longer than either may take.
	snapshotTimeout = 25 * time.Minute
	// attempts is the maximum number of snapshot requests at the target, because its cache may not have the Cluster at
	// first.
	attempts = 10
)

// dataTransfer transfers the data of hosted control planes in a move with --with-data. The phases probing, saving and
// restoring call its steps, each of which is idempotent.
type dataTransfer struct {
	Source, Target *transfer.Endpoint
	// ID identifies the requests of this move.
	ID string
	// IdentitySecret decrypts the snapshots at the target; empty if they are not encrypted.
	IdentitySecret string
	// Timeout is the timeout for requests to a controller that do not depend on the amount of data.
	Timeout time.Duration
	Now     func() time.Time
	Sleep   func(context.Context, time.Duration) error
	Report  func(line string)
}

func (t dataTransfer) report(form string, args ...any) { t.Report(fmt.Sprintf(form, args...)) }

// Probe checks that the target can start the control planes except for their data, and that both management clusters
// can access the stores. It does not interrupt the control planes. The phase probing calls it.
func (t dataTransfer) Probe(ctx context.Context, planes []ControlPlane) error {
	for _, p := range planes {
		t.report("Seeing that %s could start at the target", p.ID)
		if err := t.quiesce(ctx, t.Target, p, hostedv1.QuiesceLoopback, hostedv1.QuiesceAwaitingData); err != nil {
			return err
		}
		t.report("Taking a snapshot of Cluster %s, to see that both reach the store of EtcdSnapshotPolicy %s", p.Cluster, p.Policy)
		name, err := t.takeSnapshot(ctx, p)
		if err != nil {
			return err
		}
		if err := t.awaitVisible(ctx, p, name); err != nil {
			return err
		}
	}
	return nil
}

// Save quiesces the control planes at the source, and takes their final snapshots. The phase saving calls it.
func (t dataTransfer) Save(ctx context.Context, planes []ControlPlane) error {
	for n, p := range planes {
		t.report("Stopping the API server of Cluster %s at the source", p.Cluster)
		if err := t.quiesce(ctx, t.Source, p, hostedv1.QuiesceEtcd, hostedv1.QuiesceEtcd); err != nil {
			return err
		}
		t.report("Taking the last snapshot of Cluster %s", p.Cluster)
		name, err := t.takeSnapshot(ctx, p)
		if err != nil {
			return err
		}
		planes[n].Snapshot = name
	}
	return nil
}

// Restore stops the control planes at the source, and starts them at the target from the final snapshots.
func (t dataTransfer) Restore(ctx context.Context, planes []ControlPlane) error {
	for _, p := range planes {
		if err := t.quiesce(ctx, t.Source, p, hostedv1.QuiesceStopped, hostedv1.QuiesceStopped); err != nil {
			return err
		}
		_, at, ok := snapshots.ParseName(p.Snapshot)
		if !ok {
			return fault.New(fault.Invalid, "UnreadableJournal", "the journal has no snapshot of %s: it was changed by another client; take the move back with --rollback", p.ID)
		}
		t.report("Restoring snapshot %s of Cluster %s at the target", p.Snapshot, p.Cluster)
		// The ID derives from the name of the snapshot, so that a repeated call does not restore again.
		request := hosted.RestoreRequest{ID: at.UTC().Format("20060102T150405Z"), Policy: p.Policy, Snapshot: p.Snapshot, IdentitySecret: t.IdentitySecret, OtherCluster: true}.String()
		if err := t.annotate(ctx, t.Target, p.ID, p.Version, map[string]*string{hostedv1.RestoreAnnotation: &request}); err != nil {
			return err
		}
		long := t
		long.Timeout = snapshotTimeout
		if err := long.quiesce(ctx, t.Target, p, hostedv1.QuiesceLoopback, hostedv1.QuiesceLoopback); err != nil {
			return err
		}
		t.report("The API server of Cluster %s answers at the target", p.Cluster)
	}
	return nil
}

// Release removes the quiesce requests in one management cluster. Control planes that no longer exist are skipped.
// Move.finish calls it.
func (t dataTransfer) Release(ctx context.Context, at *transfer.Endpoint, planes []ControlPlane) error {
	for _, p := range planes {
		if err := t.annotate(ctx, at, p.ID, p.Version, map[string]*string{hostedv1.QuiesceAnnotation: nil}); err != nil && fault.KindOf(err) != fault.Gone {
			return err
		}
	}
	return nil
}

// quiesce requests a quiesce mode of a control plane, and waits until its status confirms this request.
func (t dataTransfer) quiesce(ctx context.Context, at *transfer.Endpoint, p ControlPlane, mode, state string) error {
	value, want := mode+"/"+t.ID, state+"/"+t.ID
	if err := t.annotate(ctx, at, p.ID, p.Version, map[string]*string{hostedv1.QuiesceAnnotation: &value}); err != nil {
		return err
	}
	said := ""
	return t.await(ctx, func() (bool, string, error) {
		o, err := t.get(ctx, at, p.ID, p.Version)
		if err != nil {
			return false, "", err
		}
		if text(o, "status", "quiesced") == want {
			return true, "", nil
		}
		message := cmp.Or(conditionMessage(o, hostedv1.RestoredCondition), conditionMessage(o, hostedv1.AvailableCondition))
		if message != "" && message != said {
			said = message
			t.report("%s of the %s: %s", p.ID, at.Name, message)
		}
		return false, fmt.Sprintf("%s of the %s is not %s: %s", p.ID, at.Name, strings.ToLower(state[:1])+state[1:], cmp.Or(message, "its controller does not say why")), nil
	})
}

// await polls until done returns true; why is the reason for waiting, for the timeout error.
func (t dataTransfer) await(ctx context.Context, done func() (is bool, why string, err error)) error {
	for waited := time.Duration(0); ; waited += dataPollInterval {
		is, why, err := done()
		if err != nil || is {
			return err
		}
		if waited >= t.Timeout {
			return fault.New(fault.Transient, "NotTransferred", "%s", why)
		}
		if err := t.Sleep(ctx, dataPollInterval); err != nil {
			return err
		}
	}
}

// takeSnapshot takes a new snapshot at the source, and returns its name.
func (t dataTransfer) takeSnapshot(ctx context.Context, p ControlPlane) (string, error) {
	t.Timeout = snapshotTimeout
	name := ""
	err := t.await(ctx, func() (bool, string, error) {
		o, err := t.get(ctx, t.Source, p.policy(), p.PolicyVersion)
		if err != nil {
			return false, "", err
		}
		why := fmt.Sprintf("EtcdSnapshotPolicy %s of the source does not take snapshot %s: %s", p.Policy, name, problemOf(o, p.Cluster))
		asked := o.GetAnnotations()[hostedv1.TakeSnapshotAnnotation]
		switch {
		case asked != "": // perhaps from an earlier command, or another one
			return false, why, nil
		case name != "" && slices.Contains(listed(o, p.Cluster), name):
			return true, "", nil
		case name != "":
			return false, "", fault.New(fault.Transient, "SnapshotFailed", "%s", why)
		}
		name = t.newName(listed(o, p.Cluster), p.Cluster)
		return false, why, t.annotate(ctx, t.Source, p.policy(), p.PolicyVersion, map[string]*string{hostedv1.TakeSnapshotAnnotation: &name})
	})
	return name, err
}

// newName returns the name of a new snapshot. Scheduled snapshots are named after whole minutes, so that a recent one
// that is not listed yet cannot be mistaken for the new one.
func (t dataTransfer) newName(have []string, cluster string) string {
	at := t.Now().UTC().Truncate(time.Second)
	for at.Second() == 0 || slices.Contains(have, snapshots.Name(cluster, at)) {
		at = at.Add(time.Second)
	}
	return snapshots.Name(cluster, at)
}

// awaitVisible waits until the target lists a snapshot of the source. It requests the snapshot there: a snapshot that
// is already in the store fulfills the request.
func (t dataTransfer) awaitVisible(ctx context.Context, p ControlPlane, name string) error {
	asked := 0
	return t.await(ctx, func() (bool, string, error) {
		o, err := t.get(ctx, t.Target, p.policy(), p.PolicyVersion)
		if err != nil {
			return false, "", err
		}
		if slices.Contains(listed(o, p.Cluster), name) {
			return true, "", nil
		}
		why := fmt.Sprintf("the target does not find snapshot %s in the store of EtcdSnapshotPolicy %s: %s", name, p.Policy, problemOf(o, p.Cluster))
		if o.GetAnnotations()[hostedv1.TakeSnapshotAnnotation] != "" {
			return false, why, nil
		}
		if asked++; asked > attempts {
			return false, "", fault.New(fault.Invalid, "StoreNotShared", "%s", why)
		}
		return false, why, t.annotate(ctx, t.Target, p.policy(), p.PolicyVersion, map[string]*string{hostedv1.TakeSnapshotAnnotation: &name})
	})
}

func (p ControlPlane) policy() graph.ID {
	return graph.ID{Group: hostedv1.GroupVersion.Group, Kind: "EtcdSnapshotPolicy", Namespace: p.ID.Namespace, Name: p.Policy}
}

// listed returns the names of a Cluster's snapshots in the status of a policy.
func listed(policy *unstructured.Unstructured, cluster string) (names []string) {
	for _, s := range listOf(dataClusterOf(policy, cluster), "snapshots") {
		if name, _ := s["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func dataClusterOf(policy *unstructured.Unstructured, cluster string) map[string]any {
	status, _, _ := unstructured.NestedMap(policy.UnstructuredContent(), "status")
	for _, c := range listOf(status, "clusters") {
		if c["name"] == cluster {
			return c
		}
	}
	return nil
}

func listOf(of map[string]any, field string) (out []map[string]any) {
	all, _ := of[field].([]any)
	for _, one := range all {
		if m, ok := one.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// problemOf returns the problem that a policy reports for a Cluster.
func problemOf(policy *unstructured.Unstructured, cluster string) string {
	message, _ := dataClusterOf(policy, cluster)["message"].(string)
	return cmp.Or(conditionMessage(policy, hostedv1.StoreAvailableCondition), message, "its status does not say why; `kubectl events --for etcdsnapshotpolicy/"+policy.GetName()+"` may")
}

// conditionMessage returns the message of a condition that is False.
func conditionMessage(o *unstructured.Unstructured, kind string) string {
	status, _, _ := unstructured.NestedMap(o.UnstructuredContent(), "status")
	for _, c := range listOf(status, "conditions") {
		if message, _ := c["message"].(string); c["type"] == kind && c["status"] == "False" {
			return message
		}
	}
	return ""
}

// annotate sets annotations, or removes those without a value. It retries on conflict, because the controller may write
// the object at the same time.
func (t dataTransfer) annotate(ctx context.Context, at *transfer.Endpoint, id graph.ID, version string, values map[string]*string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := t.get(ctx, at, id, version)
		if err != nil {
			return err
		}
		return at.Writer.Patch(ctx, o, func(o client.Object) {
			for key, value := range values {
				kube.Annotate(o, key, value)
			}
		})
	})
}

// get reads an object, and returns an error if it does not exist.
func (t dataTransfer) get(ctx context.Context, at *transfer.Endpoint, id graph.ID, version string) (*unstructured.Unstructured, error) {
	o, err := at.Get(ctx, id, version)
	if err == nil && o == nil {
		err = fault.New(fault.Gone, "ObjectMissing", "%s does not exist at the %s", id, at.Name)
	}
	return o, err
}
