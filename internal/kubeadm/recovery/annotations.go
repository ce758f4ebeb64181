package recovery

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
)

// IDLayout is the time layout of request IDs.
const IDLayout = "20060102T150405Z"

// ManualRebuild is the beginning of the message of condition Recovered while the user has to rebuild etcd.
// `slipway recover controlplane --manual` recognizes this state by it, and prints the commands.
const ManualRebuild = "Waiting for a manual rebuild of etcd"

// maxText limits the size of an annotation, in bytes, because users can write them.
const maxText = 8192

var (
	idPattern   = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z$`)
	namePattern = regexp.MustCompile(`^[a-z0-9.-]{0,253}$`) // an object name, or empty; safe to print
	snapshotID  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,230}-[0-9]{8}T[0-9]{6}Z$`)
)

// Snapshot is an etcd snapshot in the store of an EtcdSnapshotPolicy. The zero value means no snapshot.
type Snapshot struct {
	Policy string `json:"policy,omitempty"`
	Name   string `json:"name,omitempty"`
	// IdentitySecret is the name of a Secret with an age identity that decrypts the snapshot, if it is encrypted.
	IdentitySecret string `json:"identitySecret,omitempty"`
	// OtherCluster allows a snapshot of a Cluster with the same name and another UID.
	OtherCluster bool `json:"otherCluster,omitempty"`
}

// isValid reports whether the names are well-formed. The snapshot may still not exist.
func (s Snapshot) isValid() bool {
	return s.Policy != "" && namePattern.MatchString(s.Policy) && namePattern.MatchString(s.IdentitySecret) && snapshotID.MatchString(s.Name)
}

// Time returns the time in the snapshot's name, at which it was taken.
func (s Snapshot) Time() time.Time {
	at, _ := time.Parse(IDLayout, s.Name[strings.LastIndexByte(s.Name, '-')+1:]) // zero if the name has no valid time
	return at
}

// RecoveryRequest is the request to recover a control plane that has lost its etcd quorum. It is the JSON value of an
// annotation of a KubeadmControlPlane: `slipway recover controlplane` writes it, and the KubeadmControlPlane controller
// reads it in each reconciliation and records the progress in it. The JSON names in this file are a protocol between
// Slipway, infrastructure providers and users, and must stay.
type RecoveryRequest struct {
	// ID identifies the request. It is the time of the request, as 20261125T131500Z.
	ID string `json:"id"`
	// Survivor is the Machine whose etcd member becomes the only member. If it is empty, the members are surveyed and
	// nothing is changed.
	Survivor string `json:"survivor,omitempty"`
	// Snapshot is restored on the survivor's machine and replaces the data of its member. If it is zero, the data is
	// retained.
	Snapshot Snapshot `json:"snapshot,omitzero"`
	// Manual means that the user rebuilds etcd on the survivor by hand, and no order is sent to its infrastructure.
	Manual bool `json:"manual,omitempty"`
	// Force skips the check that the quorum is lost, and the wait for the deletion of the other machines.
	Force bool `json:"force,omitempty"`
	// Accepted is set by the controller when the recovery starts, together with Lost, which lists the other Machines
	// and the members without a Machine.
	Accepted bool         `json:"accepted,omitempty"`
	Lost     []LostMember `json:"lost,omitempty"`
}

// LostMember is a Machine, or a Node without a Machine, whose etcd member is discarded. The KubeadmControlPlane
// controller chooses them when it accepts the request.
type LostMember struct {
	Machine string `json:"machine,omitempty"`
	Node    string `json:"node,omitempty"`
}

// Restores reports whether the request restores a snapshot. The KubeadmControlPlane controller then orders Stage and
// Restore instead of Rebuild.
func (r RecoveryRequest) Restores() bool { return r.Snapshot != Snapshot{} }

// Discards reports whether the etcd member of the Machine is discarded. The KubeadmControlPlane controller deletes such
// a Machine before etcd is rebuilt.
func (r RecoveryRequest) Discards(machine string) bool {
	for _, lost := range r.Lost {
		if machine != "" && lost.Machine == machine {
			return true
		}
	}
	return false
}

// String returns the value of the annotation.
func (r RecoveryRequest) String() string { return encode(r) }

// ParseRequest parses the annotation of a control plane. It returns nil if there is none. The KubeadmControlPlane
// controller and `slipway recover controlplane` call it.
func ParseRequest(annotations map[string]string) (*RecoveryRequest, error) {
	r, err := parse[RecoveryRequest](annotations, controlplanev1.RecoverAnnotation)
	if err == nil && r != nil && !(idPattern.MatchString(r.ID) && namePattern.MatchString(r.Survivor) && (!r.Restores() || r.Snapshot.isValid())) {
		err = invalid(controlplanev1.RecoverAnnotation)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// LostNodes returns the Nodes whose etcd members are discarded by the request on a control plane. The
// KubeadmControlPlane controller also reads these Nodes, because their Machines may no longer exist.
func LostNodes(annotations map[string]string) []string {
	var out []string
	if r, err := ParseRequest(annotations); err == nil && r != nil {
		for _, lost := range r.Lost {
			if lost.Node != "" {
				out = append(out, lost.Node)
			}
		}
	}
	return out
}

// Step is an operation on an infrastructure machine.
type Step string

const (
	// Survey reads the state of the etcd member and changes nothing.
	Survey Step = "Survey"
	// Rebuild makes the member the only one of its cluster.
	Rebuild Step = "Rebuild"
	// Stage copies a snapshot to the machine and prepares a data directory from it. The data in use is not changed.
	Stage Step = "Stage"
	// Restore replaces the member's data with the staged data. The member becomes the only one of a new cluster.
	Restore Step = "Restore"
)

func (s Step) isKnown() bool { return slices.Contains([]Step{Survey, Rebuild, Stage, Restore}, s) }

// EtcdOrder requests one step from an infrastructure machine. Its provider runs the step once and writes a [Report]
// with the same ID and step.
type EtcdOrder struct {
	ID   string `json:"id"`
	Step Step   `json:"step"`
	// Snapshot to stage, from the store of a policy in the machine's namespace.
	Snapshot Snapshot `json:"snapshot,omitzero"`
}

// String returns the value of the annotation.
func (o EtcdOrder) String() string { return encode(o) }

// ParseOrder parses the annotation of an infrastructure machine. It returns nil if there is no valid order. The
// infrastructure provider calls it, and the KubeadmControlPlane controller, which orders no step twice.
func ParseOrder(annotations map[string]string) *EtcdOrder {
	o, err := parse[EtcdOrder](annotations, controlplanev1.EtcdOrderAnnotation)
	if err != nil || o == nil || !idPattern.MatchString(o.ID) || !o.Step.isKnown() || (o.Step == Stage) != o.Snapshot.isValid() {
		return nil
	}
	return o
}

// Report is the result of an order. The infrastructure provider writes it, and the KubeadmControlPlane controller reads
// it.
type Report struct {
	ID   string `json:"id"`
	Step Step   `json:"step"`
	// Problem is the reason why the order failed, or empty if it succeeded.
	Problem string `json:"problem,omitempty"`
	// Member is the result of a survey.
	Member *MemberState `json:"member,omitempty"`
}

// MemberState is the state that an etcd member reports.
type MemberState struct {
	// Leader is true if the member knows a leader, which means that the cluster has quorum.
	Leader bool `json:"leader,omitempty"`
	// Revision is the revision of the member's data. Index is the highest index that the member knows to be
	// committed.
	Revision int64 `json:"revision,omitempty"`
	Index    int64 `json:"index,omitempty"`
}

// String returns the value of the annotation.
func (r Report) String() string { return encode(r) }

// IsFor reports whether the report is the result of the order. The KubeadmControlPlane controller ignores a report
// about an earlier order.
func (r *Report) IsFor(o EtcdOrder) bool { return r != nil && r.ID == o.ID && r.Step == o.Step }

// ParseReport parses the annotation of an infrastructure machine. It returns nil if there is no valid report.
func ParseReport(annotations map[string]string) *Report {
	r, err := parse[Report](annotations, controlplanev1.EtcdReportAnnotation)
	if err != nil {
		return nil
	}
	return r
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // strings, numbers and booleans can always be encoded
		panic(err)
	}
	return string(text)
}

func parse[T any](annotations map[string]string, name string) (*T, error) {
	text, ok := annotations[name]
	if !ok {
		return nil, nil
	}
	out := new(T)
	if len(text) > maxText || json.Unmarshal([]byte(text), out) != nil {
		return nil, invalid(name)
	}
	return out, nil
}

func invalid(name string) error {
	return fault.New(fault.Invalid, "RecoveryRequestInvalid", "Annotation %s is not valid: it requires JSON with an id such as 20261125T131500Z, "+
		"and optionally the name of a Machine, and of a snapshot with its policy", name)
}
