package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// readData reads the required state of the target for a move with the data of hosted control planes (--with-data). The
// functions of this file have no effect in other moves. Move.readInput calls it.
func (m *Move) readData(ctx context.Context, f *planInput) error {
	if !m.WithData {
		return nil
	}
	f.data = &dataInput{DataOptions: m.Data, Items: f.selection.Items(), Endpoints: map[string]graph.ID{}, Identities: map[string]bool{}}
	for _, i := range f.data.Items {
		if hasHostData(i) && f.at(i.ID) != i.ID {
			f.selection.Problems = append(f.selection.Problems, fmt.Sprintf("%s would get another name at the target: its data does not go along then", i.ID))
		}
		if hasHostData(i) && m.Data.IdentitySecret != "" {
			if err := m.readIdentity(ctx, f.data, i.ID.Namespace); err != nil {
				return err
			}
		}
	}
	kind := transfer.KindOf(f.kinds, graph.ID{Group: clusterv1.GroupVersion.Group, Kind: graph.Cluster})
	if kind.Kind == "" || kind.Missing {
		return nil
	}
	clusters, err := m.target.List(ctx, kind, "")
	for _, c := range clusters {
		if at := dataEndpoint(c.Unstructured); at != "" {
			f.data.Endpoints[at] = graph.IDOf(c.Unstructured)
		}
	}
	return err
}

// readIdentity reads whether the target has the Secret that decrypts snapshots.
func (m *Move) readIdentity(ctx context.Context, f *dataInput, namespace string) error {
	secret := &corev1.Secret{}
	err := m.target.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: m.Data.IdentitySecret}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.Identities[namespace] = len(secret.Data[snapshots.IdentityKey]) > 0
	return err
}

// surveyData adds the data to transfer and the objects to recreate to the plan. Plan.survey calls it.
func (p *Plan) surveyData(f planInput) {
	planes, replaced, problems := dataSurvey(*f.data)
	p.Data, p.replaced, p.Problems = planes, replaced, append(p.Problems, problems...)
	for _, d := range planes {
		p.Notes = append(p.Notes, d.Notes()...)
	}
	for _, i := range f.data.Items {
		if OnHost(i) {
			p.hosted = append(p.hosted, i.ID)
		}
	}
}

// transfer returns the transfer of the data, for the phases below.
func (m *Move) transfer(j *journal) dataTransfer {
	return dataTransfer{
		Source: m.source, Target: m.target, ID: j.ID, IdentitySecret: m.Data.IdentitySecret,
		Timeout: m.Timeout, Now: m.Now, Sleep: m.Sleep, Report: m.Report,
	}
}

// probe executes the phase probing: it checks that the data can be transferred, before anything is stopped. Move.step
// calls it.
func (m *Move) probe(ctx context.Context, j *journal) (phase, error) {
	return saving, m.rollBackOnFailure(ctx, j, m.transfer(j).Probe(ctx, j.Plan.Data))
}

// save executes the phase saving: it quiesces the control planes at the source and takes their final snapshots, whose
// names are recorded in the journal. Move.step calls it.
func (m *Move) save(ctx context.Context, j *journal) (phase, error) {
	return restoring, m.rollBackOnFailure(ctx, j, m.transfer(j).Save(ctx, j.Plan.Data))
}

// restoreData executes the phase restoring: it stops the control planes at the source, and starts them at the target.
// Move.step calls it.
func (m *Move) restoreData(ctx context.Context, j *journal) (phase, error) {
	return deleting, m.rollBackOnFailure(ctx, j, m.transfer(j).Restore(ctx, j.Plan.Data))
}

// rollBackOnFailure rolls the move back if a controller did not complete its part, so that the control planes do not
// remain stopped. data_transfer.go returns faults with these reasons. After other errors the move can be continued.
func (m *Move) rollBackOnFailure(ctx context.Context, j *journal, err error) error {
	f := fault.As(err)
	if f == nil || !slices.Contains([]string{"NotTransferred", "SnapshotFailed", "StoreNotShared"}, f.Reason) {
		if err != nil {
			return withContinueHint(err)
		}
		return nil
	}
	m.Report(fmt.Sprintf("Taking the move back, because %s", f.Message))
	if back := m.rollBack(ctx, j); back != nil {
		return back
	}
	return fault.New(fault.Transient, "DataNotMoved", "everything is back at the source, with its data, because %s", f.Message)
}

// deletesItself reports whether the controller of an object also deletes its resources on the host when the object is
// deleted. This applies at the source to everything without transferred data, and at the target, during a rollback, to
// control planes that were started there.
func (m *Move) deletesItself(s *transfer.Endpoint, o graph.Object) bool {
	i := graph.Item{Node: &graph.Node{Object: o, ID: graph.IDOf(o.Unstructured)}}
	return m.WithData && OnHost(i) && (s == m.source || hasHostData(i))
}

// replaceMachines deletes the Machines at the target whose nodes ran on the host of the source. Their owners create
// others when the target is resumed; until then it is paused, so that no other Machine gets the same name. The nodes no
// longer exist, so they are not drained. A hook delays the deletion of each Machine until the API of its Cluster is
// reachable, so that its Node is deleted, too. The phase deleting (Move.remove) calls it.
func (m *Move) replaceMachines(ctx context.Context, j *journal) error {
	live, err := m.target.FindEntries(ctx, j.Plan.Entries, transfer.Entry.At)
	if err != nil {
		return err
	}
	for _, e := range j.Plan.Entries {
		machine, ok := live[e.At()]
		if !ok || e.Copy || !e.ID.IsCore("Machine") {
			continue
		}
		id, _ := infraOf(machine.Unstructured)
		infra, ok := live[id]
		if !ok || !OnHost(graph.Item{Node: &graph.Node{Object: infra, ID: id}}) {
			continue
		}
		if err := deleteWithoutDrain(ctx, m.target, machine.Unstructured); err != nil {
			return err
		}
		if err := m.target.Writer.DeleteAnyway(ctx, infra.Unstructured); err != nil {
			return err
		}
	}
	return nil
}

// nodeHook delays the deletion of a Machine until its Node can be deleted.
const nodeHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/slipway-move"

// deleteWithoutDrain deletes a Machine whose node no longer exists.
func deleteWithoutDrain(ctx context.Context, s *transfer.Endpoint, machine *unstructured.Unstructured) error {
	if machine.GetDeletionTimestamp() != nil {
		return nil
	}
	err := s.Writer.Patch(ctx, machine, func(o client.Object) {
		for _, key := range []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, nodeHook} {
			graph.Annotate(o.(*unstructured.Unstructured), key, true)
		}
	})
	if err != nil {
		return err
	}
	return s.Writer.DeleteAnyway(ctx, machine)
}

// awaitAPIs waits until the APIs of the Clusters with transferred data are reachable at the target, and then removes
// nodeHook from their Machines. Move.finish calls it.
func (m *Move) awaitAPIs(ctx context.Context, j *journal) error {
	for _, p := range j.Plan.Data {
		id := graph.ID{Group: clusterv1.GroupVersion.Group, Kind: graph.Cluster, Namespace: p.ID.Namespace, Name: p.Cluster}
		at := slices.IndexFunc(j.Plan.Entries, func(e transfer.Entry) bool { return e.ID == id })
		if at < 0 {
			continue
		}
		m.Report(fmt.Sprintf("Waiting for the API of Cluster %s to answer at the target", p.Cluster))
		if err := m.awaitInitialized(ctx, id, j.Plan.Entries[at].Version); err != nil {
			return err
		}
	}
	if len(j.Plan.Data) == 0 {
		return nil
	}
	live, err := m.target.FindEntries(ctx, j.Plan.Entries, transfer.Entry.At)
	if err != nil {
		return err
	}
	for _, o := range live {
		if _, kept := o.GetAnnotations()[nodeHook]; !kept || !graph.IDOf(o.Unstructured).IsCore("Machine") {
			continue
		}
		err := m.target.Writer.Patch(ctx, o.Unstructured, func(c client.Object) { graph.Annotate(c.(*unstructured.Unstructured), nodeHook, false) })
		if err != nil && fault.KindOf(err) != fault.Gone {
			return err
		}
	}
	return nil
}

// awaitInitialized waits until the control plane of a Cluster at the target is initialized.
func (m *Move) awaitInitialized(ctx context.Context, id graph.ID, version string) error {
	const interval, patience = time.Second, 10 * time.Minute
	for waited := time.Duration(0); ; waited += interval {
		cluster, err := m.target.Get(ctx, id, version)
		if err != nil || cluster == nil || graph.IsInitialized(cluster) {
			return err
		}
		if waited >= patience {
			return fault.New(fault.Transient, "NotAnswering", "the API of %s does not answer at the target: see what its HostedControlPlane and its LocalCluster say there", id)
		}
		if err := m.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}
