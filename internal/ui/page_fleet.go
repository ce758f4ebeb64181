package ui

import (
	"cmp"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipwayhq/slipway/internal/fleet"
)

// Limits of the pages about the fleet.
const (
	maxRows = 1500
	// maxValues is the maximum number of values in a list of the filter.
	maxValues = 500
)

// fleetFilter selects clusters.
type fleetFilter struct {
	Text, Namespace, Class, Version, Provider, Health, Label string
	Sort                                                     string
	// Problem describes a label selector that cannot be parsed.
	Problem  string
	selector labels.Selector
}

func newFleetFilter(q url.Values) fleetFilter {
	f := fleetFilter{
		Text: q.Get("q"), Namespace: q.Get("namespace"), Class: q.Get("class"), Version: q.Get("version"),
		Provider: q.Get("provider"), Health: q.Get("health"), Label: q.Get("label"), Sort: q.Get("sort"),
	}
	var err error
	if f.selector, err = labels.Parse(f.Label); err != nil {
		f.Problem, f.selector = "The label filter is not a selector such as team=a,tier!=dev.", labels.Everything()
	}
	return f
}

// isSet reports whether the filter selects less than everything.
func (f fleetFilter) isSet() bool {
	return cmp.Or(f.Text, f.Namespace, f.Class, f.Version, f.Provider, f.Health, f.Label) != ""
}

// matches reports whether the filter selects a cluster. The health is not checked, because the counts of all values are
// shown.
func (f fleetFilter) matches(c fleet.Cluster) bool {
	equal := func(want, value string) bool { return want == "" || want == value }
	return equal(f.Namespace, c.Namespace) && equal(f.Class, orDash(c.Class)) && equal(f.Provider, orDash(c.Infrastructure)) &&
		(f.Version == "" || f.Version == orDash(c.Version) || slices.Contains(c.RunningVersions, f.Version)) &&
		f.selector.Matches(labels.Set(c.Labels)) && f.matchesText(c)
}

// matchesText reports whether every word of the text is in a column of the row.
func (f fleetFilter) matchesText(c fleet.Cluster) bool {
	if f.Text == "" {
		return true
	}
	row := strings.ToLower(strings.Join([]string{c.Namespace, c.Name, c.Class, c.Infrastructure, c.Version, c.Reason, string(c.Health), c.Phase}, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(f.Text)) {
		if !strings.Contains(row, word) {
			return false
		}
	}
	return true
}

// withHealth returns the query of the same filter with another health.
func (f fleetFilter) withHealth(health string) string {
	q := url.Values{}
	for name, value := range map[string]string{
		"q": f.Text, "namespace": f.Namespace, "class": f.Class, "version": f.Version, "provider": f.Provider, "label": f.Label, "sort": f.Sort, "health": health,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "?" + q.Encode()
}

// fleetContent is the input of templates/fleet.html, which reads its fields by name.
type fleetContent struct {
	Filter   fleetFilter
	Filtered bool
	Counts   []healthCount
	Total    int
	All      string
	// Rows are the rendered rows of the table.
	Rows []template.HTML
	Cut  cut
	// The values of the lists of the filter.
	Namespaces, Classes, Versions, Providers filterValues
}

// filterValues are the values of a list of the filter.
type filterValues struct {
	Values []string
	Cut    cut
}

type healthCount struct {
	Health  fleet.Health
	Count   int
	URL     string
	Current bool
}

type fleetRow struct {
	fleet.Cluster
	ID, URL   string
	CauseLink link
	Started   age
	Versions  string
}

// fleetPage lists the clusters of a management cluster. [Server.Handler] routes to it.
func (s *Server) fleetPage(q request) (any, error) {
	return newFleetContent(q, q.source.board.Clusters()), nil
}

func newFleetContent(q request, rows []fleet.Cluster) fleetContent {
	f := newFleetFilter(q.URL.Query())
	out := fleetContent{Filter: f, Filtered: f.isSet(), All: f.withHealth("")}
	out.addValues(rows)
	counts := map[fleet.Health]int{}
	var selected []fleet.Cluster
	for _, row := range rows {
		if !f.matches(row) {
			continue
		}
		counts[row.Health]++
		out.Total++
		if f.Health == "" || f.Health == string(row.Health) {
			selected = append(selected, row)
		}
	}
	for _, h := range fleet.AllHealth() {
		out.Counts = append(out.Counts, healthCount{Health: h, Count: counts[h], URL: f.withHealth(string(h)), Current: f.Health == string(h)})
	}
	if f.Sort != "name" {
		slices.SortStableFunc(selected, fleet.CompareClustersByTrouble)
	}
	selected, out.Cut = limit(selected, maxRows)
	for _, row := range selected {
		out.Rows = append(out.Rows, q.source.rows.render(q, row))
	}
	return out
}

// rowLife is the time after which a row is rendered again although it has not changed, because it contains ages.
const rowLife = time.Minute

// rowCache has the rendered rows of clusters, because rendering takes longer than everything else of the fleet page.
// Each source has one.
type rowCache struct {
	// template renders one row.
	template *template.Template

	mu   sync.Mutex
	rows map[fleet.Key]renderedRow
}

type renderedRow struct {
	revision uint64
	at       time.Time
	html     template.HTML
}

// render returns the row of a cluster. The template escapes all texts.
func (c *rowCache) render(q request, row fleet.Cluster) template.HTML {
	key := fleet.Key{Namespace: row.Namespace, Name: row.Name}
	c.mu.Lock()
	known, ok := c.rows[key]
	c.mu.Unlock()
	if ok && known.revision == row.Revision && q.now.Sub(known.at) < rowLife {
		return known.html
	}
	var out strings.Builder
	if err := c.template.ExecuteTemplate(&out, "row", newFleetRow(q, row)); err != nil {
		return template.HTML(template.HTMLEscapeString(err.Error())) //nolint:gosec // escaped
	}
	html := template.HTML(out.String()) //nolint:gosec // html/template has escaped it for a table
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows[key] = renderedRow{revision: row.Revision, at: q.now, html: html}
	return html
}

// update renders the changed rows, and forgets the rows of clusters that do not exist. Each refresh of the source calls
// it.
func (c *rowCache) update(q request, changed []fleet.Key) {
	for _, key := range changed {
		if row, ok := q.source.board.Cluster(key); ok {
			c.render(q, row)
			continue
		}
		c.mu.Lock()
		delete(c.rows, key)
		c.mu.Unlock()
	}
}

func newFleetRow(q request, c fleet.Cluster) fleetRow {
	out := fleetRow{Cluster: c, ID: rowID(c.Namespace, c.Name), URL: q.source.clusterURL(c.Namespace, c.Name), Versions: c.VersionText()}
	if root := c.Chain().Root(); root.Object != c.Ref() {
		out.CauseLink = q.source.link(root.Object)
	}
	if c.Since != nil {
		out.Started = newAge(c.Since.Time, q.now)
	}
	return out
}

func (c *fleetContent) addValues(rows []fleet.Cluster) {
	sets := [4]map[string]bool{{}, {}, {}, {}}
	for _, row := range rows {
		for i, value := range []string{row.Namespace, orDash(row.Class), orDash(row.Version), orDash(row.Infrastructure)} {
			sets[i][value] = true
		}
		for _, v := range row.RunningVersions {
			sets[2][v] = true
		}
	}
	for i, to := range []*filterValues{&c.Namespaces, &c.Classes, &c.Versions, &c.Providers} {
		to.Values, to.Cut = limit(slices.Sorted(maps.Keys(sets[i])), maxValues)
	}
}

// needsContent lists what needs a user. It is the input of templates/needs.html, which reads its fields by name.
type needsContent struct {
	Rows []needsRow
	Cut  cut
	// NotRead are the management clusters that have not been read, or whose data is stale.
	NotRead []notRead
}

// notRead is a management cluster whose clusters may not all be known.
type notRead struct {
	Title string
	readState
	// Data describes the data that is shown.
	Data string
}

type needsRow struct {
	fleetRow
	SourceTitle string
	Chain       *chainView
}

// needsPage lists the clusters of all management clusters that need a user, the oldest cause first. [Server.Handler]
// routes to it.
func (s *Server) needsPage(q request) (any, error) {
	var out needsContent
	for _, source := range s.sources {
		if state := source.readState(); !state.isComplete() {
			out.NotRead = append(out.NotRead, notRead{Title: source.Title, readState: state, Data: state.text()})
		}
		of := request{Request: q.Request, source: source, now: q.now}
		for _, c := range source.board.Clusters() {
			if c.NeedsUser {
				row := needsRow{fleetRow: newFleetRow(of, c), SourceTitle: source.Title, Chain: source.chain(c.Chain(), q.now)}
				row.ID = rowID(source.id, c.Namespace, c.Name)
				out.Rows = append(out.Rows, row)
			}
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b needsRow) int { return fleet.CompareClustersByTrouble(a.Cluster, b.Cluster) })
	out.Rows, out.Cut = limit(out.Rows, maxRows)
	return out, nil
}
