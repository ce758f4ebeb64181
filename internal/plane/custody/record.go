package custody

import (
	"regexp"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Kind of a thing of Docker's.
type Kind string

// Kinds of things.
const (
	Container Kind = "container"
	Network   Kind = "network"
	Volume    Kind = "volume"
)

// Item is one thing of Docker's. Its ID never names another one; volumes have none, so that theirs is made of the name and the time
// of their creation.
type Item struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
	// Maker is the instance in its label.
	Maker string `json:"maker"`
	// Object is the namespace and name of the LocalCluster or LocalMachine in its label.
	Object string `json:"object"`
}

func (i Item) key() string { return string(i.Kind) + "/" + i.ID }

// Record is what one Cluster has on the host.
type Record struct {
	// Cluster is its namespace and name, UID its UID in the management cluster that gives it.
	Cluster string `json:"cluster"`
	UID     string `json:"uid"`
	// From and To are instances.
	From string `json:"from"`
	To   string `json:"to"`
	// Moving tells that the move is not over: it may be taken back.
	Moving bool `json:"moving,omitempty"`
	// Planes and Balancers are the names of folders, Images that of the images that are kept for later nodes.
	Planes    []string `json:"planes,omitempty"`
	Balancers []string `json:"balancers,omitempty"`
	Images    []string `json:"images,omitempty"`
	Items     []Item   `json:"items,omitempty"`
}

var usable = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// check refuses a record that would not become a file in the folder.
func (r Record) check() error {
	if !usable.MatchString(r.UID) {
		return fault.New(fault.Bug, "CustodyRecord", "the UID %q of Cluster %s cannot be part of the name of a file", r.UID, r.Cluster)
	}
	return nil
}

// Namespace of the Cluster.
func (r Record) Namespace() string {
	namespace, _, _ := strings.Cut(r.Cluster, "/")
	return namespace
}

// without returns the record without those of its items that are among others.
func (r Record) without(others []Item) Record {
	r.Items = slices.DeleteFunc(slices.Clone(r.Items), func(i Item) bool {
		return slices.ContainsFunc(others, func(o Item) bool { return o.key() == i.key() })
	})
	return r
}

// Holdings is what the records of a data directory say.
type Holdings struct {
	instance string
	// giving is what is being given, while that may be taken back.
	giving, given, taken map[string]bool
	planes               map[string]Record // those that are being given, by name
}

// NewHoldings are those of an instance with these records.
func NewHoldings(instance string, given, taken []Record) Holdings {
	h := Holdings{instance: instance, giving: map[string]bool{}, given: map[string]bool{}, taken: map[string]bool{}, planes: map[string]Record{}}
	for _, r := range given {
		set := h.given
		if r.Moving {
			set = h.giving
		}
		for _, i := range r.Items {
			set[i.key()] = true
		}
		for _, name := range r.Planes {
			if r.Moving {
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

// Has reports whether the thing belongs to the instance. The first row that applies decides:
//
//	no instance made it         no
//	it is being given           no
//	it was taken                yes (perhaps back: it may have been given before)
//	it was given                no
//	this instance made it       yes
func (h Holdings) Has(i Item) bool {
	k := i.key()
	switch {
	case i.Maker == "" || h.giving[k]:
		return false
	case h.taken[k]:
		return true
	}
	return !h.given[k] && i.Maker == h.instance
}

// Giving returns the record by which the control plane of this name is being given to another instance.
func (h Holdings) Giving(plane string) (Record, bool) {
	r, ok := h.planes[plane]
	return r, ok
}
