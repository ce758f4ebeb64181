package hosttransfer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Kind of a Docker resource. The records of existing data directories contain the values, so they must not change.
type Kind string

// Kinds of Docker resources.
const (
	Container Kind = "container"
	Network   Kind = "network"
	Volume    Kind = "volume"
)

// Item is a Docker resource of the container backend. Its ID is never reused. Volumes have no ID in Docker, therefore
// their ID here consists of the name and the creation time. The container backend creates them from Docker's lists.
type Item struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
	// Creator is the instance in the label of the resource.
	Creator string `json:"maker"`
	// Object is the namespace and name of the LocalCluster or LocalMachine in the label.
	Object string `json:"object"`
}

func (i Item) key() string { return string(i.Kind) + "/" + i.ID }

// Record lists the resources of one Cluster on the host that `slipway move` transfers. The JSON names must stay,
// because the data directories of other versions of Slipway contain records.
type Record struct {
	// Cluster is the namespace and name, and UID the UID of the Cluster in the source management cluster.
	Cluster string `json:"cluster"`
	UID     string `json:"uid"`
	// From and To are the source and target instances.
	From string `json:"from"`
	To   string `json:"to"`
	// InProgress means that the transfer is not complete and can be canceled.
	InProgress bool `json:"moving,omitempty"`
	// Planes and Balancers are the directory names of hosted control planes and load balancers. Images are the names of
	// images that are stored for nodes created later.
	Planes    []string `json:"planes,omitempty"`
	Balancers []string `json:"balancers,omitempty"`
	Images    []string `json:"images,omitempty"`
	Items     []Item   `json:"items,omitempty"`
}

var usable = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// check rejects a UID that cannot be part of a file name. The [Store] calls it before it writes or removes a file.
func (r Record) check() error {
	if !usable.MatchString(r.UID) {
		return fault.New(fault.Bug, "CustodyRecord", "the UID %q of Cluster %s cannot be part of the name of a file", r.UID, r.Cluster)
	}
	return nil
}

// Namespace returns the namespace of the Cluster.
func (r Record) Namespace() string {
	namespace, _, _ := strings.Cut(r.Cluster, "/")
	return namespace
}

// without returns the record without the other items. [Store.FinishTransfer] calls it.
func (r Record) without(others []Item) Record {
	r.Items = slices.DeleteFunc(slices.Clone(r.Items), func(i Item) bool {
		return slices.ContainsFunc(others, func(o Item) bool { return o.key() == i.key() })
	})
	return r
}

// Ownership evaluates the records of a data directory. The container backend checks with it which containers, networks
// and volumes it may list and delete, and the supervisor which control planes it may start.
type Ownership struct {
	instance string
	// giving contains resources whose transfer can still be canceled.
	giving, given, taken map[string]bool
	planes               map[string]Record // control planes that are being transferred, by name
}

// newOwnership returns the ownership of an instance with these records. [Store.Ownership] calls it.
func newOwnership(instance string, given, taken []Record) Ownership {
	h := Ownership{instance: instance, giving: map[string]bool{}, given: map[string]bool{}, taken: map[string]bool{}, planes: map[string]Record{}}
	for _, r := range given {
		set := h.given
		if r.InProgress {
			set = h.giving
		}
		for _, i := range r.Items {
			set[i.key()] = true
		}
		for _, name := range r.Planes {
			if r.InProgress {
				h.planes[name] = r
			}
		}
	}
	for _, r := range taken {
		for _, i := range r.Items {
			h.taken[i.key()] = true
		}
	}
	return h
}

// Owns reports whether the resource belongs to the instance. The first matching row applies:
//
//	no instance in the label                            no
//	transfer to another data directory in progress      no
//	transferred from another data directory             yes (it may have been transferred away before)
//	transferred to another data directory               no
//	this instance in the label                          yes
func (h Ownership) Owns(i Item) bool {
	k := i.key()
	switch {
	case i.Creator == "" || h.giving[k]:
		return false
	case h.taken[k]:
		return true
	}
	return !h.given[k] && i.Creator == h.instance
}

// OutgoingTransfer returns the record of the transfer of a control plane to another instance that is in progress.
// Package supervisor calls it before it starts a control plane.
func (h Ownership) OutgoingTransfer(plane string) (Record, bool) {
	r, ok := h.planes[plane]
	return r, ok
}
