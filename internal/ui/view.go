package ui

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// maxShown is the maximum length of a text on a page in bytes.
const maxShown = 4096

// frame is the data of the frame around every page. It is the input of templates/base.html, which reads its fields by
// name.
type frame struct {
	Page     string
	Tabs     []tab
	Source   *sourceView
	NeedsURL string
	Needs    int
	// Position is the number of the last change before the page was rendered.
	Position uint64
	// Processes are the problems of the processes of the management clusters of the page.
	Processes []processView
	// Stale describes the data of the page if changes are not received; otherwise it is empty.
	Stale string
	// Unreadable are the kinds that cannot be read in the management clusters of the page.
	Unreadable []unreadableView
	Now        time.Time
	Content    any
}

// processView is the problem of the processes of a management cluster.
type processView struct {
	Title string
	Chain *chainView
}

// tab is a management cluster in the header.
type tab struct {
	Title, URL string
	Current    bool
	Problems   int
	// NotRead is true if the Clusters cannot be read.
	NotRead bool
}

// sourceView is the state of the current management cluster.
type sourceView struct {
	Title, URL, ExtensionsURL string
	Namespace                 string
	readState
	// Discovery is the reason why new kinds are not found, although the Clusters can be read.
	Discovery string
}

// unreadableView lists the kinds that cannot be read in a management cluster.
type unreadableView struct {
	// ID is the ID of the list.
	ID, Title string
	Kinds     []mirror.Unreadable
}

func (s *Server) frame(q request, page string, position uint64, content any) frame {
	f := frame{Page: page, NeedsURL: "/needs", Position: position, Now: q.now, Content: content}
	for _, source := range s.sources {
		state := source.readState()
		t := tab{Title: source.Title, URL: source.url(), Current: source == q.source, NotRead: state.Problem != ""}
		if source == q.source || q.source == nil {
			f.Stale = cmp.Or(f.Stale, state.text())
			f.addUnreadable(source)
			if c, found := source.processProblem(); found {
				f.Processes = append(f.Processes, processView{Title: source.Title, Chain: source.processChain(c, q.now)})
			}
		}
		for _, row := range source.board.Clusters() {
			if row.Health == fleet.Problem {
				t.Problems++
			}
			if row.NeedsUser {
				f.Needs++
			}
		}
		f.Tabs = append(f.Tabs, t)
	}
	if q.source != nil {
		f.Source = newSourceView(q.source)
	}
	return f
}

func newSourceView(s *Source) *sourceView {
	out := &sourceView{Title: s.Title, URL: s.url(), ExtensionsURL: s.url() + "extensions", Namespace: s.Namespace, readState: s.readState()}
	if err := s.mirror.Status().Err; err != nil && out.Problem == "" {
		out.Discovery = fault.UserMessage(err)
	}
	return out
}

// addUnreadable adds the kinds of a management cluster that cannot be read.
func (f *frame) addUnreadable(s *Source) {
	if kinds := s.mirror.Status().Unreadable; len(kinds) > 0 {
		f.Unreadable = append(f.Unreadable, unreadableView{ID: "unreadable-" + s.id, Title: s.Title, Kinds: kinds})
	}
}

func (s *Source) url() string { return "/m/" + s.id + "/" }

func (s *Source) clusterURL(namespace, name string) string {
	return s.url() + "cluster/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

// objectURL returns the page of an object. It is empty for kinds that the page does not read.
func (s *Source) objectURL(of rootcause.Ref) string {
	switch {
	case of == rootcause.Ref{} || of.Group == "" || of.Kind == "" || of.Name == "":
		return ""
	case of == fleet.Cluster{Namespace: of.Namespace, Name: of.Name}.Ref():
		return s.clusterURL(of.Namespace, of.Name)
	}
	return s.detailURL(of)
}

// detailURL returns the page of an object, also for a Cluster, which has another page besides.
func (s *Source) detailURL(of rootcause.Ref) string {
	parts := []string{emptyToDash(of.Group), of.Kind, emptyToDash(of.Namespace), of.Name}
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return s.url() + "object/" + strings.Join(parts, "/")
}

// link is the name of an object with the path of its page.
type link struct {
	Kind, Name, URL string
}

func (s *Source) link(of rootcause.Ref) link {
	return link{Kind: of.Kind, Name: of.Name, URL: s.objectURL(of)}
}

// chainView is a root cause chain. The template parts.html draws it.
type chainView struct {
	Links     []chainLink
	Remedy    rootcause.Remedy
	NeedsUser bool
	Plans     bool
}

type chainLink struct {
	Link                  link
	Type, Reason, Message string
	Since                 age
	Root                  bool
}

func (s *Source) chain(c rootcause.Chain, now time.Time) *chainView {
	if len(c.Links) == 0 {
		return nil
	}
	out := &chainView{Remedy: c.Remedy, NeedsUser: c.NeedsUser(), Plans: c.Plans}
	out.Remedy.Command = rootcause.WithFlags(c.Remedy.Command, s.Flags)
	for i, l := range c.Links {
		out.Links = append(out.Links, chainLink{
			Link: s.link(l.Object), Type: l.Type, Reason: l.Reason, Message: l.Message, Since: newAge(l.Since, now), Root: i == len(c.Links)-1,
		})
	}
	return out
}

// processChain returns the view of a problem of processes. Its command needs no flags of the management cluster.
func (s *Source) processChain(c rootcause.Chain, now time.Time) *chainView {
	out := s.chain(c, now)
	out.Remedy.Command = c.Remedy.Command
	return out
}

// age is a time that is shown relative to now.
type age struct {
	Time time.Time
	Text string
}

func newAge(t, now time.Time) age {
	if t.IsZero() {
		return age{}
	}
	return age{Time: t.UTC(), Text: duration.HumanDuration(max(0, now.Sub(t)))}
}

// functions are the functions of the templates. The templates call them by name.
func functions() template.FuncMap {
	return template.FuncMap{
		"text":    safeText,
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05") },
		"lower":   func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"lines":   textLines,
		"plural":  plural,
		"replica": newReplicaView,
		"short":   shortName,
		"choice": func(title, name, current string, values filterValues) choice {
			return choice{title, name, current, values}
		},
	}
}

// safeText makes a text of a tenant fit for a page: bounded, and with visible control characters, so that it cannot change
// the direction of the text around it. The template escapes it for HTML.
func safeText(v any) string {
	return redact.Escape(redact.Clip(strings.ToValidUTF8(fmt.Sprint(v), "\uFFFD"), maxShown))
}

// textLines splits a message into its lines, without the bullets of a list.
func textLines(v any) []string {
	var out []string
	for line := range strings.Lines(safeText(v)) {
		if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "* ")); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func plural(n int, one string) string {
	switch stem, isY := strings.CutSuffix(one, "y"); {
	case n == 1:
		return "1 " + one
	case isY:
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// cut describes which part of a list a page shows.
type cut struct{ Shown, Total int }

// limit returns the part of a list that a page shows.
func limit[T any](all []T, most int) ([]T, cut) {
	shown := min(len(all), most)
	return all[:shown], cut{shown, len(all)}
}

// Text describes a list that is not complete, with the number of what is shown and of what exists. It is empty for a complete
// list.
func (c cut) Text(one string) string {
	if c.Shown >= c.Total {
		return ""
	}
	return fmt.Sprintf("%d of %s are shown.", c.Shown, plural(c.Total, one))
}

// choice is a list of values of a filter.
type choice struct {
	Title, Name, Current string
	filterValues
}

// shortName shortens a name for the picture, where the end distinguishes the Machines of a set.
func shortName(name string) string {
	const most = 34
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	return "…" + string(runes[len(runes)-most+1:])
}

// replicaView is a bar of Machines, 48 units wide.
type replicaView struct {
	Text, Label          string
	Ready, Stale, Extra  int
	Complete, Applicable bool
}

// newReplicaView returns the bar of some counters: ready and up to date, ready and out of date, and not ready.
func newReplicaView(r *fleet.Replicas) replicaView {
	const width = 48
	if r == nil {
		return replicaView{Text: "–", Label: "without Machines"}
	}
	total := max(r.Desired, r.Current, r.Ready, 1)
	fresh := min(r.Ready, r.UpToDate)
	v := replicaView{
		Text: fmt.Sprintf("%d/%d", r.Ready, r.Desired), Applicable: true, Complete: r.Ready == r.Desired && r.UpToDate == r.Desired,
		Label: fmt.Sprintf("%d of %d ready, %d up to date", r.Ready, r.Desired, r.UpToDate),
		Ready: int(fresh) * width / int(total), Extra: int(max(0, r.Current-r.Desired)),
	}
	v.Stale = int(r.Ready)*width/int(total) - v.Ready
	return v
}

// rowID returns an ID for the element of an object. The script of the page finds a row by it after an update.
func rowID(parts ...string) string {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "r-" + strings.Join(parts, "_")
}

func orDash(s string) string { return cmp.Or(s, "–") }
