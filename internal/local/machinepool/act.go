package machinepool

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// readMembers reads the machines of the pool from the API server, because a stale cache must not cause machines to be
// created or deleted. controller.readLiveMembers (observe.go) reads them when [decide] requests it.
type readMembers struct{}

func (readMembers) String() string { return "the machines of the pool" }

// updateProviderIDs writes spec.providerIDList, and spec.providerID.
type updateProviderIDs struct {
	// IDs are separated by commas.
	IDs string
}

func (a updateProviderIDs) String() string {
	return fmt.Sprintf("set providerIDList to [%s]: these machines exist", a.IDs)
}

// createMachine creates a LocalMachine.
type createMachine struct{ Name, FailureDomain, Why string }

func (a createMachine) String() string {
	return fmt.Sprintf("create LocalMachine %s: %s", a.Name, a.Why)
}

// adoptMachine restores the pool's owner reference on a LocalMachine.
type adoptMachine struct{ Name string }

func (a adoptMachine) String() string {
	return fmt.Sprintf("own LocalMachine %s: it was created for the pool and lost its owner", a.Name)
}

// removeMachine deletes the Machine of a LocalMachine, or the LocalMachine itself if it has no Machine.
type removeMachine struct{ Name, Machine, Why string }

func (a removeMachine) String() string {
	if a.Machine != "" {
		return fmt.Sprintf("delete Machine %s: %s", a.Machine, a.Why)
	}
	return fmt.Sprintf("delete LocalMachine %s: %s", a.Name, a.Why)
}

// act runs one action on the LocalMachinePool or its machines. Package reconciler calls it for each action that
// [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	switch a := a.(type) {
	case updateProviderIDs:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) { setProviderIDs(o.(*infrav1.LocalMachinePool), a) })
	case createMachine:
		return c.writer.Create(ctx, newMachine(s, a))
	case adoptMachine:
		return c.own(ctx, s, a)
	case removeMachine:
		return c.remove(ctx, s, a)
	}
	return reconciler.UnknownAction("local machine pool", a)
}

func setProviderIDs(o *infrav1.LocalMachinePool, a updateProviderIDs) {
	o.Spec.ProviderIDList = nil
	if a.IDs != "" {
		o.Spec.ProviderIDList = strings.Split(a.IDs, ",")
	}
	if o.Spec.ProviderID == "" {
		o.Spec.ProviderID = "slipway:///" + o.Namespace + "/" + o.Name
	}
}

// newMachine returns the LocalMachine to create. The pool is its owner but not its controller owner, because the
// Machine that the MachinePool controller creates for it becomes the controller owner.
func newMachine(s snapshot, a createMachine) *infrav1.LocalMachine {
	template := s.Object.Spec.Template
	m := &infrav1.LocalMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Object.Namespace, Name: a.Name,
			Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{ownerOf(s)},
		},
		Spec: infrav1.LocalMachineSpec{Backend: *template.Backend.DeepCopy(), FailureDomain: a.FailureDomain},
	}
	maps.Copy(m.Labels, template.ObjectMeta.Labels)
	maps.Copy(m.Labels, map[string]string{
		clusterv1.ClusterNameLabel: s.Pool.Spec.ClusterName, clusterv1.MachinePoolNameLabel: contract.LabelValue(s.Pool.Name),
	})
	m.Labels = ownership.PassWatchLabel(s.Object, m.Labels)
	maps.Copy(m.Annotations, template.ObjectMeta.Annotations)
	maps.Copy(m.Annotations, map[string]string{backend.PoolAnnotation: s.Object.Name, hashAnnotation: s.hash()})
	return m
}

// ownerOf returns the owner reference of a LocalMachine to its pool.
func ownerOf(s snapshot) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: infrav1.GroupVersion.String(), Kind: "LocalMachinePool",
		Name: s.Object.Name, UID: s.Object.UID, BlockOwnerDeletion: ptr.To(true),
	}
}

func (c *controller) own(ctx context.Context, s snapshot, a adoptMachine) error {
	for _, m := range s.Members {
		if m.Local.Name == a.Name {
			return c.writer.Patch(ctx, m.Local, func(o client.Object) { ownership.AddOwner(o, ownerOf(s)) })
		}
	}
	return nil
}

func (c *controller) remove(ctx context.Context, s snapshot, a removeMachine) error {
	for _, m := range s.Members {
		if m.Local.Name != a.Name {
			continue
		}
		if m.Machine == nil {
			return c.writer.Delete(ctx, m.Local)
		}
		if err := c.writer.Delete(ctx, m.Machine); err != nil {
			return err
		}
		if c.events != nil {
			c.events.Eventf(m.Machine, s.Object, corev1.EventTypeNormal, "RemovedFromPool", "Delete", "LocalMachinePool %s deletes it: %s", s.Object.Name, a.Why)
		}
	}
	return nil
}
