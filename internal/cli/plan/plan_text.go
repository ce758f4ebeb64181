package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/plan"
)

// Limits for lists without --all.
const (
	maxNames  = 4
	maxSteps  = 8
	maxFields = 20
	maxValue  = 80
	maxWaits  = 5 // of objects, and of extensions
	maxHosts  = 20
)

// page collects the lines of the text that "slipway plan" prints. [render] fills one.
type page struct {
	strings.Builder
	all bool
}

func (p *page) line(indent int, format string, args ...any) {
	p.WriteString(strings.Repeat("  ", indent))
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// render writes a plan as text: a block for each cluster, followed by rejected parts, waiting objects, and the summary.
// `slipway plan` calls it unless -o is set.
func render(w io.Writer, result *plan.Plan, all bool) error {
	p := &page{all: all}
	for _, b := range mergeEqualBlocks(blocks(result, all), all) {
		p.WriteString(b.title() + "\n" + b.text + "\n")
	}
	writeHosts(p, result)
	writeRefusals(p, result)
	writeWaits(p, result)
	writeUnanswered(p, result)
	writeSummary(p, result)
	_, err := io.WriteString(w, strings.TrimRight(p.String(), "\n")+"\n")
	return err
}

// block is the text about one cluster.
type block struct {
	cluster, text, signature string
	others                   []string
	all                      bool
}

func (b block) title() string {
	switch {
	case b.cluster == "":
		return "Objects of no cluster"
	case len(b.others) == 0:
		return "Cluster " + b.cluster
	}
	return fmt.Sprintf("Cluster %s, and %d more in the same way: %s", b.cluster, len(b.others), formatNames(b.others, b.all))
}

// blocks returns the blocks of all clusters in order, starting with objects without a cluster.
func blocks(result *plan.Plan, all bool) []block {
	objects, rollouts := map[string][]plan.ObjectChange{}, map[string][]plan.Rollout{}
	var order []string
	for _, o := range result.Objects {
		if len(objects[o.Cluster]) == 0 {
			order = append(order, o.Cluster)
		}
		objects[o.Cluster] = append(objects[o.Cluster], o)
	}
	for _, r := range result.Rollouts {
		rollouts[r.Cluster] = append(rollouts[r.Cluster], r)
	}
	hooks := map[string][]plan.Hook{}
	for _, h := range result.Hooks {
		hooks[h.Cluster] = append(hooks[h.Cluster], h)
		if !slices.Contains(order, h.Cluster) {
			order = append(order, h.Cluster)
		}
	}
	slices.Sort(order)
	var out []block
	for _, name := range order {
		p := &page{all: all}
		writeChanges(p, objects[name])
		for _, h := range hooks[name] {
			p.line(1, "! hook %s is called: %s", h.Hook, formatNames(h.Handlers, all))
		}
		for _, r := range rollouts[name] {
			writeRollout(p, r, objects[name])
		}
		out = append(out, block{cluster: name, text: p.String(), signature: signature(name, p.String(), objects[name]), all: all})
	}
	return out
}

// signature returns the text without the names that differ between clusters with the same changes.
func signature(cluster, text string, objects []plan.ObjectChange) string {
	if cluster == "" {
		return text
	}
	replace := []string{}
	slices.SortStableFunc(objects, func(a, b plan.ObjectChange) int { return cmp.Compare(len(b.Name), len(a.Name)) })
	for _, o := range objects {
		replace = append(replace, o.Name, "<"+o.Kind+">")
	}
	_, name, _ := strings.Cut(cluster, "/")
	return strings.NewReplacer(append(replace, name, "<cluster>")...).Replace(text)
}

// mergeEqualBlocks merges the blocks of clusters with the same changes.
func mergeEqualBlocks(in []block, all bool) []block {
	if all {
		return in
	}
	var out []block
	at := map[string]int{}
	for _, b := range in {
		n, found := at[b.signature]
		if !found || b.cluster == "" {
			at[b.signature] = len(out)
			out = append(out, b)
			continue
		}
		out[n].others = append(out[n].others, b.cluster)
	}
	return out
}

// isMachineObject reports whether an object is a Machine or is created and deleted with one: its bootstrap config and
// infrastructure, and the Secret with the bootstrap data.
func isMachineObject(o plan.ObjectChange) bool {
	return o.Kind == "Machine" || strings.HasPrefix(o.Owner, "Machine/") || o.Kind == "Secret" && strings.HasSuffix(o.Owner, "/"+o.Name)
}

// writeChanges writes the objects. Objects with the same changed fields share an entry. Objects that are created and
// deleted with a Machine are counted with the Machines.
func writeChanges(p *page, objects []plan.ObjectChange) {
	type entry struct {
		plan.ObjectChange
		names []string
	}
	var entries []entry
	at := map[string]int{}
	for _, o := range objects {
		if isMachineObject(o) && o.Verb != plan.Update {
			continue
		}
		text, _ := json.Marshal(o.Fields) // the fields were decoded from JSON
		key := fmt.Sprint(o.Kind, o.Verb, string(text))
		if n, found := at[key]; found && o.Verb == plan.Update {
			entries[n].names = append(entries[n].names, o.Name)
			continue
		}
		at[key] = len(entries)
		entries = append(entries, entry{o, []string{o.Name}})
	}
	for _, e := range entries {
		count := ""
		if len(e.names) > 1 {
			count = fmt.Sprintf("%d × ", len(e.names))
		}
		p.line(1, "%s %s%s %s", sign(e.Verb), count, e.Kind, formatNames(e.names, p.all))
		writeFields(p, e.Fields)
	}
}

func sign(v plan.Verb) string {
	return map[plan.Verb]string{plan.Create: "+", plan.Update: "~", plan.Delete: "-"}[v]
}

func writeFields(p *page, list []plan.Field) {
	for n, f := range list {
		if n == maxFields && !p.all {
			p.line(3, "… and %s", plural(len(list)-n, "more field", "more fields"))
			return
		}
		switch {
		case f.From == nil:
			p.line(3, "+ %s: %s", f.Path, formatValue(f.To, p.all))
		case f.To == nil:
			p.line(3, "- %s: %s", f.Path, formatValue(f.From, p.all))
		default:
			p.line(3, "%s: %s → %s", f.Path, formatValue(f.From, p.all), formatValue(f.To, p.all))
		}
	}
}

// formatValue formats a value on one line.
func formatValue(v any, all bool) string {
	text, ok := v.(string)
	if !ok || strings.ContainsAny(text, "\n\t") || text == "" {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		text = string(data)
	}
	if runes := []rune(text); len(runes) > maxValue && !all {
		return string(runes[:maxValue]) + "…"
	}
	return text
}

func formatNames(list []string, all bool) string {
	if len(list) <= maxNames || all {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNames-1], ", "), len(list)-maxNames+1)
}

// writeRollout writes the changes of the Machines of an owner.
func writeRollout(p *page, r plan.Rollout, objects []plan.ObjectChange) {
	replaced := min(r.Created, len(r.Deleted))
	var what []string
	for _, one := range []struct {
		n    int
		text string
	}{{replaced, "%d replaced"}, {r.Created - replaced, "%d created"}, {len(r.Deleted) - replaced, "%d deleted"}, {len(r.Kept), "%d kept"}} {
		if one.n > 0 {
			what = append(what, fmt.Sprintf(one.text, one.n))
		}
	}
	p.line(1, "Machines of %s %s: %s%s", r.Kind, r.Name, strings.Join(what, ", "), dependentKinds(objects))
	for n, s := range r.Steps {
		if n >= maxSteps-1 && n < len(r.Steps)-1 && !p.all {
			if n == maxSteps-1 {
				p.line(3, "… %s", plural(len(r.Steps)-maxSteps, "more step", "more steps"))
			}
			continue
		}
		var do []string
		if s.Created > 0 {
			do = append(do, fmt.Sprintf("create %d", s.Created))
		}
		if len(s.Deleted) > 0 {
			do = append(do, "delete "+formatNames(s.Deleted, p.all))
		}
		p.line(3, "%d. %s", n+1, strings.Join(do, ", "))
	}
}

// dependentKinds lists the kinds of objects that are created and deleted with Machines.
func dependentKinds(objects []plan.ObjectChange) string {
	var kinds []string
	for _, o := range objects {
		if strings.HasPrefix(o.Owner, "Machine/") && o.Verb != plan.Update && !slices.Contains(kinds, o.Kind) {
			kinds = append(kinds, o.Kind)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return ", each with its " + strings.Join(kinds, " and ")
}

// writeHosts writes which hosts other Machines use in the end, and which are missing.
func writeHosts(p *page, result *plan.Plan) {
	if len(result.Hosts)+len(result.MissingHosts) > 0 {
		p.line(0, "Hosts")
	}
	for n, h := range result.Hosts {
		if n == maxHosts && !p.all {
			p.line(1, "… and %s", plural(len(result.Hosts)-n, "more host", "more hosts"))
			break
		}
		text := "taken by " + hostUser(h.After)
		switch {
		case h.After == nil:
			text = "released by " + hostUser(h.Before)
		case h.Before != nil:
			text = fmt.Sprintf("released by %s, then %s", hostUser(h.Before), text)
		}
		p.line(1, "%s %s/%s: %s", h.Kind, h.Namespace, h.Name, text)
	}
	for _, m := range result.MissingHosts {
		p.line(1, "! %s of Cluster %s get%s no host. %s", plural(m.Count, "Machine", "Machines"), m.Cluster, map[bool]string{true: "s"}[m.Count == 1], m.Message)
	}
	if result.HostsUnknown {
		p.line(0, "The SSHHosts cannot be read with this account: the plan assumes that there are enough.")
	}
	if len(result.Hosts)+len(result.MissingHosts) > 0 || result.HostsUnknown {
		p.line(0, "")
	}
}

func hostUser(u *plan.HostUser) string {
	switch {
	case u == nil:
		return ""
	case u.Generated:
		kind, name, _ := strings.Cut(u.Owner, "/")
		return fmt.Sprintf("a new Machine of %s %s/%s", kind, u.Namespace, name)
	}
	return fmt.Sprintf("Machine %s/%s", u.Namespace, u.Machine)
}

func writeRefusals(p *page, result *plan.Plan) {
	for _, r := range result.Refused {
		p.line(0, "! %s %s is refused: %s", r.Kind, r.Name, r.Message)
	}
	if len(result.Refused) > 0 {
		p.line(0, "")
	}
}

func writeWaits(p *page, result *plan.Plan) {
	if len(result.Waits) > 0 {
		p.line(0, "Then waiting:")
	}
	for n, w := range result.Waits {
		if n == maxWaits && !p.all {
			p.line(1, "… and %s", plural(len(result.Waits)-n, "more object", "more objects"))
			break
		}
		for _, one := range w.Waits {
			p.line(1, "%s %s: %s", w.Kind, w.Object, one.Message)
		}
		for _, message := range w.Errors {
			p.line(1, "%s %s: %s", w.Kind, w.Object, message)
		}
	}
	if len(result.Waits) > 0 {
		p.line(0, "")
	}
}

// writeUnanswered lists the extensions whose responses are unknown, and the consequences.
func writeUnanswered(p *page, result *plan.Plan) {
	for n, u := range result.Unanswered {
		if n == maxWaits && !p.all {
			p.line(0, "… and %s", plural(len(result.Unanswered)-n, "more extension", "more extensions"))
			break
		}
		of := "Cluster"
		switch u.Hook {
		case plan.DiscoverVariables:
			of = "ClusterClass"
		case plan.CanUpdateMachineSet:
			of = "MachineSet"
		}
		if u.Problem == "" {
			p.line(0, "Not called: extension %s (%s) for %s %s: %s. Use --call-extensions to call it.", u.Extension, u.Hook, of, formatNames(u.Objects, p.all), u.Means)
		} else {
			p.line(0, "No response: extension %s (%s) for %s %s: %s. So %s.", u.Extension, u.Hook, of, formatNames(u.Objects, p.all), u.Problem, u.Means)
		}
	}
	if len(result.Unanswered) > 0 {
		p.line(0, "")
	}
}

// writeSummary writes the last line.
func writeSummary(p *page, result *plan.Plan) {
	if result.UnderWay > 0 {
		p.line(0, "%s still to be created, changed or deleted without this change; the plan begins when that is done.", plural(result.UnderWay, "object is", "objects are"))
	}
	if !result.Settled {
		p.line(0, "This plan is incomplete: the controllers still had work after %d reconciliations.", result.Reconciliations)
	}
	if len(result.Objects) == 0 {
		switch {
		case len(result.Refused) > 0:
		case result.IsUncertain():
			p.line(0, "Nothing changes, as far as the plan can determine without those responses.")
		default:
			p.line(0, "Nothing changes.")
		}
		return
	}
	count := map[plan.Verb]int{}
	for _, o := range result.Objects {
		if !isMachineObject(o) || o.Verb == plan.Update {
			count[o.Verb]++
		}
	}
	text := fmt.Sprintf("Plan: %d to create, %d to change, %d to delete", count[plan.Create], count[plan.Update], count[plan.Delete])
	var created, deleted, kept int
	for _, r := range result.Rollouts {
		created, deleted, kept = created+r.Created, deleted+len(r.Deleted), kept+len(r.Kept)
	}
	if created+deleted > 0 {
		text += fmt.Sprintf("; Machines: %d to create, %d to delete", created, deleted)
	}
	p.line(0, "%s. %s touched, %d not.", text, plural(len(result.Clusters), "cluster is", "clusters are"), result.Untouched)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
