package action

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/authority"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/remediation"
	"github.com/slipwayhq/slipway/internal/recovery"
)

// The actions of the controller beside those of package machines. Each may be repeated.
type (
	// Join labels the control plane with its Cluster.
	Join struct{ Cluster string }
	// CreateSecret generates an authority, or the keys of service accounts.
	CreateSecret struct {
		Purpose authority.Purpose
		Cluster string
	}
	// OwnSecret makes the control plane the controller of a Secret.
	OwnSecret struct {
		Purpose authority.Purpose
		Cluster string
	}
	// WriteKubeconfig issues the kubeconfig of the administrator.
	WriteKubeconfig struct{ Cluster, Why string }
	// CreateMachine creates a Machine with its clones. The first initializes the cluster, the others join it.
	CreateMachine struct {
		Name, Domain string
		Joins        bool
		Why          string
	}
	// SetConditions sets the conditions of a Machine that are the control plane's; Types are those that change.
	SetConditions struct {
		Machine    string
		Types      []string
		Conditions []metav1.Condition
	}
	// MoveLeader makes another member of etcd the leader.
	MoveLeader struct {
		To         uint64
		Node, From string
	}
	// RemoveMember removes a member of etcd.
	RemoveMember struct {
		ID        uint64
		Name, Why string
	}
	// RemoveHook lets the Machine controller delete the infrastructure of a Machine.
	RemoveHook struct{ Machine, Why string }
	// NoteExpiry records on a KubeadmConfig until when the certificates of its Machine are valid.
	NoteExpiry struct {
		Config string
		Expiry time.Time
	}
	// NoteRemediation records on the control plane which Machine is replaced.
	NoteRemediation struct{ Record remediation.Record }
	// ForgetRemediation removes the record.
	ForgetRemediation struct{ Machine string }

	// OrderEtcd asks the infrastructure machine of a Machine for a step of a recovery.
	OrderEtcd struct {
		Machine string
		Order   recovery.Order
	}
	// AcceptRecovery records on the control plane that a recovery begins, and who is given up.
	AcceptRecovery struct{ Request recovery.Request }
	// ExcludeFromDrain lets the Machine controller delete a Machine without its Node.
	ExcludeFromDrain struct{ Machine string }
	// DeleteNode deletes a Node of the workload cluster that has no Machine.
	DeleteNode struct{ Node, Why string }
	// FinishRecovery removes the request for a recovery, and what was asked of the infrastructure machine of a Machine.
	FinishRecovery struct{ ID, Machine string }
)

// Independent implements loop.Independent.
func (CreateSecret) Independent() {}

// Independent implements loop.Independent.
func (SetConditions) Independent() {}

// Independent implements loop.Independent.
func (NoteExpiry) Independent() {}

// AskWorkload asks for the Nodes, Pods and members of etcd of the workload cluster.
type AskWorkload struct{}

// AskKubeadm asks for what kubeadm left in the workload cluster.
type AskKubeadm struct{}

// String says what is asked.
func (a AskKubeadm) String() string { return "what kubeadm left in the workload cluster" }

// String says what the action does, and why.
func (a Join) String() string { return "join Cluster " + a.Cluster }

// String says what the action does, and why.
func (a CreateSecret) String() string {
	return fmt.Sprintf("create Secret %s: it does not exist", a.Purpose.SecretName(a.Cluster))
}

// String says what the action does, and why.
func (a OwnSecret) String() string {
	return fmt.Sprintf("own Secret %s: it has another owner or none", a.Purpose.SecretName(a.Cluster))
}

// String says what the action does, and why.
func (a WriteKubeconfig) String() string {
	return fmt.Sprintf("write Secret %s: %s", authority.Admin.SecretName(a.Cluster), a.Why)
}

// Creates implements loop.Creating.
func (a CreateMachine) Creates() (kind string, names []string) { return "Machine", []string{a.Name} }

// String says what the action does, and why.
func (a CreateMachine) String() string {
	where := ""
	if a.Domain != "" {
		where = " in failure domain " + a.Domain
	}
	return fmt.Sprintf("create Machine %s%s: %s", a.Name, where, a.Why)
}

// String says what the action does, and why.
func (a SetConditions) String() string {
	return fmt.Sprintf("set conditions of Machine %s: %s", a.Machine, strings.Join(a.Types, ", "))
}

// String says what the action does, and why.
func (a MoveLeader) String() string {
	return fmt.Sprintf("move the etcd leader from Node %s to Node %s: its Machine is deleted", a.From, a.Node)
}

// String says what the action does, and why.
func (a RemoveMember) String() string {
	return fmt.Sprintf("remove the etcd member %s: %s", a.Name, a.Why)
}

// String says what the action does, and why.
func (a RemoveHook) String() string {
	return fmt.Sprintf("remove the hook of Machine %s: %s", a.Machine, a.Why)
}

// String says what the action does, and why.
func (a NoteExpiry) String() string {
	return fmt.Sprintf("note on KubeadmConfig %s that the certificates of its Machine are valid until %s", a.Config, a.Expiry.UTC().Format(time.RFC3339))
}

// String says what the action does, and why.
func (a NoteRemediation) String() string {
	return fmt.Sprintf("note that Machine %s is replaced", a.Record.Machine)
}

// String says what the action does, and why.
func (a ForgetRemediation) String() string {
	return fmt.Sprintf("forget that Machine %s is replaced: it has been", a.Machine)
}

// String says what is asked.
func (a AskWorkload) String() string {
	return "Nodes, Pods and members of etcd of the workload cluster"
}

// Adopt makes the control plane the controller of a Machine that has none.
type Adopt struct{ Machine string }

// Independent implements loop.Independent.
func (Adopt) Independent() {}

// String says what the action does, and why.
func (a Adopt) String() string {
	return fmt.Sprintf("adopt Machine %s: it is a control plane Machine without a controller", a.Machine)
}

// String says what the action does, and why.
func (a OrderEtcd) String() string {
	return fmt.Sprintf("order %s of etcd from the infrastructure of Machine %s: recovery %s", a.Order.Step, a.Machine, a.Order.ID)
}

// String says what the action does, and why.
func (a AcceptRecovery) String() string {
	if a.Request.Restores() {
		return fmt.Sprintf("begin recovery %s: etcd is restored from snapshot %s on Machine %s", a.Request.ID, a.Request.Snapshot.Name, a.Request.Survivor)
	}
	return fmt.Sprintf("begin recovery %s: etcd is rebuilt from the member of Machine %s", a.Request.ID, a.Request.Survivor)
}

// String says what the action does, and why.
func (a ExcludeFromDrain) String() string {
	return fmt.Sprintf("exclude Machine %s from draining: its member of etcd is given up", a.Machine)
}

// String says what the action does, and why.
func (a DeleteNode) String() string { return fmt.Sprintf("delete Node %s: %s", a.Node, a.Why) }

// String says what the action does, and why.
func (a FinishRecovery) String() string {
	return fmt.Sprintf("end recovery %s: etcd was rebuilt", a.ID)
}
