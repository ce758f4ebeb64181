package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// UnmovedObject is an object that is linked to a selected one and does not move. Package transfer finds them.
type UnmovedObject struct {
	Link
	// Owner is the UID of From, if To depends on it.
	Owner types.UID
	// CRD is the CRD of To's kind; empty for a built-in kind. Unread means that objects of the kind were not read,
	// because of the CRD's labels.
	CRD    string
	Unread bool
	// Dependent means that From owns To, and not the other way round.
	Dependent bool
	// BuiltIn means that To has a built-in kind whose objects never move.
	BuiltIn bool
	// ReadError is the error if To may exist and cannot be read.
	ReadError error
}

// LeftBehind describes the linked objects that do not move, in one sentence for each kind and type of link. The
// sentences are problems of the plan, and prevent the move. Package move calls it for its plan.
func LeftBehind(all []UnmovedObject) []string {
	type group struct{ kind, link string }
	var order []group
	groups := map[group][]UnmovedObject{}
	for _, l := range all {
		if l.ReadError != nil && l.BuiltIn {
			continue // one sentence for all kinds
		}
		k := group{kind: l.To.Kind + "." + l.To.Group, link: l.verb()}
		if l.ReadError != nil {
			k = group{kind: l.CRD + l.To.Kind, link: l.ReadError.Error()}
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], l)
	}
	out := unlisted(all)
	for _, k := range order {
		same := groups[k]
		slices.SortFunc(same, func(a, b UnmovedObject) int {
			return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
		})
		distinct := slices.CompactFunc(same, func(a, b UnmovedObject) bool { return a.From == b.From && a.To == b.To })
		out = append(out, distinct[0].sentence(len(distinct)-1))
	}
	slices.Sort(out)
	return out
}

// unlisted returns one sentence for all built-in kinds that the user may not list.
func unlisted(all []UnmovedObject) []string {
	var kinds []string
	namespace := ""
	for _, l := range all {
		if l.ReadError != nil && l.BuiltIn {
			kinds, namespace = append(kinds, plural(l.To.Kind)), l.To.Namespace
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	slices.Sort(kinds)
	list := strings.Join(kinds, ", ")
	if last := len(kinds) - 1; last > 0 {
		list = strings.Join(kinds[:last], ", ") + " and " + kinds[last]
	}
	where := "in any namespace"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	return []string{fmt.Sprintf("the account is not allowed to list %s %s of the source, but the moved objects may own some of them, which the garbage collector would delete: use an account that is allowed to list them", list, where)}
}

func plural(kind string) string {
	switch {
	case strings.HasSuffix(kind, "y"):
		return strings.TrimSuffix(kind, "y") + "ies"
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	}
	return kind + "s"
}

func (l UnmovedObject) verb() string {
	switch {
	case l.Dependent:
		return "owns"
	case l.UID != "":
		return "is owned by"
	}
	return "refers to"
}

func (l UnmovedObject) sentence(more int) string {
	if l.ReadError != nil {
		return fmt.Sprintf("cannot check whether objects of this kind belong to the selection: %v: use an account that is allowed to read them", l.ReadError)
	}
	others := ""
	if more > 0 {
		others = fmt.Sprintf(" (and %d more of this kind)", more)
	}
	return fmt.Sprintf("%s %s %s of %s%s, which does not move: %s", l.From, l.verb(), l.To, group(l.To.Group), others, l.remedy())
}

func group(name string) string {
	if name == "" {
		return "the core API group"
	}
	return name
}

func (l UnmovedObject) remedy() string {
	const label = "clusterctl.cluster.x-k8s.io"
	switch {
	case l.BuiltIn:
		return "remove the owner reference to retain the object in the source, or delete the object: the garbage collector deletes it after the move"
	case l.Unread && l.CRD != "":
		return fmt.Sprintf("label CustomResourceDefinition %s with %s, so that its objects move", l.CRD, label)
	case l.UID != "":
		return fmt.Sprintf("remove the owner reference, or add the label %s to the owner", MoveLabel)
	case l.CRD != "" || l.To.Group == "":
		return fmt.Sprintf("add the label %s to it, or also select the object that it belongs to", MoveLabel)
	}
	return "remove the reference, or create the object in the target first"
}
