package controlplane

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// The actions of the controller, in addition to the actions of package machines: [decide] plans them, and act executes
// them. All of them are idempotent. String is the text in the log and in the output of `slipway explain`; the tests
// compare it (testdata/stories.txt).
type (
	// labelWithCluster labels the control plane with its Cluster.
	labelWithCluster struct{ Cluster string }
	// createSecret generates a CA or the service account keys.
	createSecret struct {
		Purpose secrets.Purpose
		Cluster string
	}
	ownSecret struct {
		Purpose secrets.Purpose
		Cluster string
	}
	// writeKubeconfig issues the admin kubeconfig.
	writeKubeconfig struct{ Cluster, Why string }
	// createMachine creates a Machine with its clones. The first Machine initializes the cluster, and the others join
	// it.
	createMachine struct {
		Name, Domain string
		Joins        bool
		Why          string
	}
	// setConditions sets the conditions of a Machine that the control plane owns. Types lists the conditions that
	// change.
	setConditions struct {
		Machine    string
		Types      []string
		Conditions []metav1.Condition
	}
	// moveLeader transfers etcd leadership to another member.
	moveLeader struct {
		To         uint64
		Node, From string
	}
	removeMember struct {
		ID        uint64
		Name, Why string
	}
	// removeHook removes the pre-terminate hook, so that the Machine controller can delete the infrastructure of the
	// Machine.
	removeHook struct{ Machine, Why string }
	// recordExpiry records on a KubeadmConfig when the certificates of its Machine expire. [expiryNotes] plans it.
	recordExpiry struct {
		Config string
		Expiry time.Time
	}
	// recordRemediation records on the control plane which Machine is being replaced. [remediate] plans it.
	recordRemediation struct{ Record remediationRecord }
	clearRemediation  struct{ Machine string }

	// orderEtcd orders a recovery step from the infrastructure machine of a Machine.
	orderEtcd struct {
		Machine string
		Order   recovery.EtcdOrder
	}
	// acceptRecovery records on the control plane that a recovery starts, and which members are discarded.
	acceptRecovery struct{ Request recovery.RecoveryRequest }
	// excludeFromDrain excludes a Machine from draining, so that the Machine controller can delete it without its
	// Node.
	excludeFromDrain struct{ Machine string }
	deleteNode       struct{ Node, Why string }
	// finishRecovery removes the recovery request and the order to the infrastructure machine.
	finishRecovery struct{ ID, Machine string }
)

// The driver runs consecutive actions of one of these types in parallel.

func (createSecret) Independent()  {}
func (setConditions) Independent() {}
func (recordExpiry) Independent()  {}
func (adopt) Independent()         {}

type readWorkload struct{}

type readKubeadm struct{}

func (a readKubeadm) String() string { return "kubeadm's objects in the workload cluster" }

func (a labelWithCluster) String() string { return "label with Cluster " + a.Cluster }

func (a createSecret) String() string {
	return fmt.Sprintf("create Secret %s: it does not exist", a.Purpose.SecretName(a.Cluster))
}

func (a ownSecret) String() string {
	return fmt.Sprintf("adopt Secret %s: it has another owner or none", a.Purpose.SecretName(a.Cluster))
}

func (a writeKubeconfig) String() string {
	return fmt.Sprintf("write Secret %s: %s", secrets.Admin.SecretName(a.Cluster), a.Why)
}

func (a createMachine) Creates() (kind string, names []string) { return "Machine", []string{a.Name} }

func (a createMachine) String() string {
	where := ""
	if a.Domain != "" {
		where = " in failure domain " + a.Domain
	}
	return fmt.Sprintf("create Machine %s%s: %s", a.Name, where, a.Why)
}

func (a setConditions) String() string {
	return fmt.Sprintf("set conditions of Machine %s: %s", a.Machine, strings.Join(a.Types, ", "))
}

func (a moveLeader) String() string {
	return fmt.Sprintf("move the etcd leader from Node %s to Node %s: its Machine is being deleted", a.From, a.Node)
}

func (a removeMember) String() string {
	return fmt.Sprintf("remove the etcd member %s: %s", a.Name, a.Why)
}

func (a removeHook) String() string {
	return fmt.Sprintf("remove the hook of Machine %s: %s", a.Machine, a.Why)
}

func (a recordExpiry) String() string {
	return fmt.Sprintf("record on KubeadmConfig %s that the certificates of its Machine expire at %s", a.Config, a.Expiry.UTC().Format(time.RFC3339))
}

func (a recordRemediation) String() string {
	return fmt.Sprintf("record the remediation of Machine %s", a.Record.Machine)
}

func (a clearRemediation) String() string {
	return fmt.Sprintf("remove the record of the remediation of Machine %s: it has ended", a.Machine)
}

func (a readWorkload) String() string {
	return "Nodes, Pods and etcd members of the workload cluster"
}

// adopt makes the control plane the controller of a Machine that has none.
type adopt struct{ Machine string }

func (a adopt) String() string {
	return fmt.Sprintf("adopt Machine %s: it is a control plane Machine without a controller", a.Machine)
}

func (a orderEtcd) String() string {
	return fmt.Sprintf("order etcd step %s from the infrastructure of Machine %s: recovery %s", a.Order.Step, a.Machine, a.Order.ID)
}

func (a acceptRecovery) String() string {
	if a.Request.Restores() {
		return fmt.Sprintf("start recovery %s: etcd is restored from snapshot %s on Machine %s", a.Request.ID, a.Request.Snapshot.Name, a.Request.Survivor)
	}
	return fmt.Sprintf("start recovery %s: etcd is rebuilt from the member of Machine %s", a.Request.ID, a.Request.Survivor)
}

func (a excludeFromDrain) String() string {
	return fmt.Sprintf("exclude Machine %s from draining: %s", a.Machine, whyDiscarded)
}

func (a deleteNode) String() string { return fmt.Sprintf("delete Node %s: %s", a.Node, a.Why) }

func (a finishRecovery) String() string {
	return fmt.Sprintf("end recovery %s: etcd is rebuilt", a.ID)
}
