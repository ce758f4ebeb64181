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

// IDLayout is the form of the id of a request, for package time.
const IDLayout = "20060102T150405Z"

// maxText bounds the annotations, in bytes.
const maxText = 8192

var (
	identified = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z$`)
	named      = regexp.MustCompile(`^[a-z0-9.-]{0,253}$`) // of an object; empty: none. It is printed to people
	snapshotID = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,230}-[0-9]{8}T[0-9]{6}Z$`)
)

// Snapshot is one of etcd in the store of an EtcdSnapshotPolicy. The zero value is none.
type Snapshot struct {
	Policy string `json:"policy,omitempty"`
	Name   string `json:"name,omitempty"`
	// IdentitySecret is the name of a Secret with an identity of age, where the snapshot is encrypted.
	IdentitySecret string `json:"identitySecret,omitempty"`
	// OtherCluster allows a snapshot of a Cluster of the same name that had another UID.
	OtherCluster bool `json:"otherCluster,omitempty"`
}

// isValid reports whether it names a snapshot, as far as names tell.
func (s Snapshot) isValid() bool {
	return s.Policy != "" && named.MatchString(s.Policy) && named.MatchString(s.IdentitySecret) && snapshotID.MatchString(s.Name)
}

// Time is when the snapshot was taken, as its name says.
func (s Snapshot) Time() time.Time {
	at, _ := time.Parse(IDLayout, s.Name[strings.LastIndexByte(s.Name, '-')+1:]) // the zero time where it has none
	return at
}

// Request asks a control plane to recover from the loss of its quorum, and is the journal of that.
type Request struct {
	// ID tells it from every other request: the time of it, as 20261125T131500Z.
	ID string `json:"id"`
	// Survivor is the Machine whose member of etcd becomes the whole cluster; empty: members are surveyed, and nothing is changed.
	Survivor string `json:"survivor,omitempty"`
	// Snapshot is restored on the machine of the survivor, in the place of the data of its member. Zero: its member is kept.
	Snapshot Snapshot `json:"snapshot,omitzero"`
	// Manual tells that a person rebuilds etcd on the survivor: nothing is asked of its infrastructure.
	Manual bool `json:"manual,omitempty"`
	// Force neither needs to be sure that the quorum is lost, nor waits until the machines of the others are gone.
	Force bool `json:"force,omitempty"`
	// Accepted is written by the controller when it begins, with Lost: the other Machines, and members without one.
	Accepted bool   `json:"accepted,omitempty"`
	Lost     []Lost `json:"lost,omitempty"`
}

// Lost is a Machine, or a Node without one, whose member of etcd is given up.
type Lost struct {
	Machine string `json:"machine,omitempty"`
	Node    string `json:"node,omitempty"`
}

// Restores reports whether a snapshot is restored.
func (r Request) Restores() bool { return r.Snapshot != Snapshot{} }

// HasLost reports whether a Machine is given up.
func (r Request) HasLost(machine string) bool {
	for _, lost := range r.Lost {
		if machine != "" && lost.Machine == machine {
			return true
		}
	}
	return false
}

// String is the value of the annotation.
func (r Request) String() string { return encode(r) }

// ParseRequest reads the annotation of a control plane; nil: there is none.
func ParseRequest(annotations map[string]string) (*Request, error) {
	r, err := parse[Request](annotations, controlplanev1.RecoverAnnotation)
	if err == nil && r != nil && !(identified.MatchString(r.ID) && named.MatchString(r.Survivor) && (!r.Restores() || r.Snapshot.isValid())) {
		err = invalid(controlplanev1.RecoverAnnotation)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// LostNodes are the Nodes that the request on a control plane gives up.
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

// Step is what an infrastructure machine is asked for.
type Step string

const (
	// Survey asks what the member of etcd has. Nothing is changed.
	Survey Step = "Survey"
	// Rebuild makes the member the only one of its cluster.
	Rebuild Step = "Rebuild"
	// Stage brings a snapshot to the machine, and makes data of it there. What is in use is not changed.
	Stage Step = "Stage"
	// Restore puts the data that was staged in the place of the member's, which becomes the only one of a new cluster.
	Restore Step = "Restore"
)

func (s Step) isKnown() bool { return slices.Contains([]Step{Survey, Rebuild, Stage, Restore}, s) }

// Order is what an infrastructure machine is asked for. Its provider does it once, and answers with a [Report] of the same id and step.
type Order struct {
	ID   string `json:"id"`
	Step Step   `json:"step"`
	// Snapshot to stage, in the store of a policy of the namespace of the machine.
	Snapshot Snapshot `json:"snapshot,omitzero"`
}

// String is the value of the annotation.
func (o Order) String() string { return encode(o) }

// ParseOrder reads the annotation of an infrastructure machine; nil: there is none that can be read.
func ParseOrder(annotations map[string]string) *Order {
	o, err := parse[Order](annotations, controlplanev1.EtcdOrderAnnotation)
	if err != nil || o == nil || !identified.MatchString(o.ID) || !o.Step.isKnown() || (o.Step == Stage) != o.Snapshot.isValid() {
		return nil
	}
	return o
}

// Report is the answer to an order.
type Report struct {
	ID   string `json:"id"`
	Step Step   `json:"step"`
	// Problem says why nothing came of the order; empty: it was done.
	Problem string `json:"problem,omitempty"`
	// Member is what the survey found.
	Member *Member `json:"member,omitempty"`
}

// Member is what a member of etcd says of itself.
type Member struct {
	// Leader tells that it knows a leader: the cluster has a quorum.
	Leader bool `json:"leader,omitempty"`
	// Revision of its data, and the index up to which the members had agreed, as far as it knows.
	Revision int64 `json:"revision,omitempty"`
	Index    int64 `json:"index,omitempty"`
}

// String is the value of the annotation.
func (r Report) String() string { return encode(r) }

// Answers reports whether the report is the answer to an order.
func (r *Report) Answers(o Order) bool { return r != nil && r.ID == o.ID && r.Step == o.Step }

// ParseReport reads the annotation of an infrastructure machine; nil: there is none that can be read.
func ParseReport(annotations map[string]string) *Report {
	r, err := parse[Report](annotations, controlplanev1.EtcdReportAnnotation)
	if err != nil {
		return nil
	}
	return r
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // strings, numbers and booleans always encode
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
	return fault.New(fault.Invalid, "RecoveryRequestInvalid", "The annotation %s cannot be read: it needs an id like 20261125T131500Z, and the names of a Machine and of a snapshot with its policy if any, in JSON", name)
}
