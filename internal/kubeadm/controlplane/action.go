package controlplane

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// The actions of the controller, in addition to the actions of package machines. All of them are idempotent.
type (
	// LabelWithCluster labels the control plane with its Cluster.
	LabelWithCluster struct{ Cluster string }
	// CreateSecret generates a CA or the service account keys.
	CreateSecret struct {
		Purpose secrets.Purpose
		Cluster string
	}
	// OwnSecret makes the control plane the controller owner of a Secret.
	OwnSecret struct {
		Purpose secrets.Purpose
		Cluster string
	}
	// WriteKubeconfig issues the admin kubeconfig.
	WriteKubeconfig struct{ Cluster, Why string }
	// CreateMachine creates a Machine with its clones. The first Machine initializes the cluster, and the others join
	// it.
	CreateMachine struct {
		Name, Domain string
		Joins        bool
		Why          string
	}
	// SetConditions sets the conditions of a Machine that the control plane owns. Types lists the conditions that
	// change.
	SetConditions struct {
		Machine    string
		Types      []string
		Conditions []metav1.Condition
	}
	// MoveLeader transfers etcd leadership to another member.
	MoveLeader struct {
		To         uint64
		Node, From string
	}
	// RemoveMember removes a member of etcd.
	RemoveMember struct {
		ID        uint64
		Name, Why string
	}
	// RemoveHook removes the pre-terminate hook, so that the Machine controller can delete the infrastructure of the
	// Machine.
	RemoveHook struct{ Machine, Why string }
	// NoteExpiry records on a KubeadmConfig when the certificates of its Machine expire.
	NoteExpiry struct {
		Config string
		Expiry time.Time
	}
	// NoteRemediation records on the control plane which Machine is being replaced.
	NoteRemediation struct{ Record RemediationRecord }
	// ForgetRemediation removes the record.
	ForgetRemediation struct{ Machine string }

	// OrderEtcd orders a recovery step from the infrastructure machine of a Machine.
	OrderEtcd struct {
		Machine string
		Order   recovery.EtcdOrder
	}
	// AcceptRecovery records on the control plane that a recovery starts, and which members are discarded.
	AcceptRecovery struct{ Request recovery.RecoveryRequest }
	// ExcludeFromDrain excludes a Machine from draining, so that the Machine controller can delete it without its
	// Node.
	ExcludeFromDrain struct{ Machine string }
	// DeleteNode deletes a Node of the workload cluster that has no Machine.
	DeleteNode struct{ Node, Why string }
	// FinishRecovery removes the recovery request and the order to the infrastructure machine.
	FinishRecovery struct{ ID, Machine string }
)

// Independent implements loop.Independent.
func (CreateSecret) Independent() {}

// Independent implements loop.Independent.
func (SetConditions) Independent() {}

// Independent implements loop.Independent.
func (NoteExpiry) Independent() {}

// AskWorkload reads the Nodes, Pods and etcd members of the workload cluster.
type AskWorkload struct{}

// AskKubeadm reads the objects that kubeadm created in the workload cluster.
type AskKubeadm struct{}

func (a AskKubeadm) String() string { return "what kubeadm left in the workload cluster" }

func (a LabelWithCluster) String() string { return "join Cluster " + a.Cluster }

func (a CreateSecret) String() string {
	return fmt.Sprintf("create Secret %s: it does not exist", a.Purpose.SecretName(a.Cluster))
}

func (a OwnSecret) String() string {
	return fmt.Sprintf("own Secret %s: it has another owner or none", a.Purpose.SecretName(a.Cluster))
}

func (a WriteKubeconfig) String() string {
	return fmt.Sprintf("write Secret %s: %s", secrets.Admin.SecretName(a.Cluster), a.Why)
}

// Creates implements loop.Creating.
func (a CreateMachine) Creates() (kind string, names []string) { return "Machine", []string{a.Name} }

func (a CreateMachine) String() string {
	where := ""
	if a.Domain != "" {
		where = " in failure domain " + a.Domain
	}
	return fmt.Sprintf("create Machine %s%s: %s", a.Name, where, a.Why)
}

func (a SetConditions) String() string {
	return fmt.Sprintf("set conditions of Machine %s: %s", a.Machine, strings.Join(a.Types, ", "))
}

func (a MoveLeader) String() string {
	return fmt.Sprintf("move the etcd leader from Node %s to Node %s: its Machine is deleted", a.From, a.Node)
}

func (a RemoveMember) String() string {
	return fmt.Sprintf("remove the etcd member %s: %s", a.Name, a.Why)
}

func (a RemoveHook) String() string {
	return fmt.Sprintf("remove the hook of Machine %s: %s", a.Machine, a.Why)
}

func (a NoteExpiry) String() string {
	return fmt.Sprintf("note on KubeadmConfig %s that the certificates of its Machine are valid until %s", a.Config, a.Expiry.UTC().Format(time.RFC3339))
}

func (a NoteRemediation) String() string {
	return fmt.Sprintf("note that Machine %s is replaced", a.Record.Machine)
}

func (a ForgetRemediation) String() string {
	return fmt.Sprintf("forget that Machine %s is replaced: it has been", a.Machine)
}

func (a AskWorkload) String() string {
	return "Nodes, Pods and members of etcd of the workload cluster"
}

// Adopt makes the control plane the controller of a Machine that has none.
type Adopt struct{ Machine string }

// Independent implements loop.Independent.
func (Adopt) Independent() {}

func (a Adopt) String() string {
	return fmt.Sprintf("adopt Machine %s: it is a control plane Machine without a controller", a.Machine)
}

func (a OrderEtcd) String() string {
	return fmt.Sprintf("order %s of etcd from the infrastructure of Machine %s: recovery %s", a.Order.Step, a.Machine, a.Order.ID)
}

func (a AcceptRecovery) String() string {
	if a.Request.Restores() {
		return fmt.Sprintf("begin recovery %s: etcd is restored from snapshot %s on Machine %s", a.Request.ID, a.Request.Snapshot.Name, a.Request.Survivor)
	}
	return fmt.Sprintf("begin recovery %s: etcd is rebuilt from the member of Machine %s", a.Request.ID, a.Request.Survivor)
}

func (a ExcludeFromDrain) String() string {
	return fmt.Sprintf("exclude Machine %s from draining: its member of etcd is given up", a.Machine)
}

func (a DeleteNode) String() string { return fmt.Sprintf("delete Node %s: %s", a.Node, a.Why) }

func (a FinishRecovery) String() string {
	return fmt.Sprintf("end recovery %s: etcd was rebuilt", a.ID)
}
