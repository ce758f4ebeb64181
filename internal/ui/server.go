package ui

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Limits of the HTTP server.
const (
	headerTimeout  = 5 * time.Second
	responseTime   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	shutdownTime   = 2 * time.Second
	// maxQuery is the maximum length of a query string.
	maxQuery = 4096
)

// Server serves the page of some management clusters.
type Server struct {
	sources []*Source
	hub     *hub
	pages   map[string]*template.Template
	now     func() time.Time
}

// NewServer returns the server of the sources. There must be at least one. `slipway ui` calls it.
func NewServer(sources []*Source, now func() time.Time) (*Server, error) {
	s := &Server{sources: sources, hub: newHub(), pages: map[string]*template.Template{}, now: now}
	setIDs(sources)
	for _, source := range sources {
		source.hub = s.hub
	}
	base, err := template.New("base.html").Funcs(functions()).ParseFS(templateFiles, "templates/base.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"fleet", "cluster", "object", "extensions", "needs", "error"} {
		clone, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if s.pages[name], err = clone.ParseFS(templateFiles, "templates/"+name+".html"); err != nil {
			return nil, err
		}
	}
	for _, source := range sources {
		source.rows.template = s.pages["fleet"]
	}
	return s, nil
}

// Handler returns the handler of all paths, without the guard. The methods url, clusterURL and detailURL of [Source]
// build the paths, and topicsOf splits them. They must be changed together.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	assets, _ := fs.Sub(assetFiles, "assets") // cannot fail for a constant name
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(assets)))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/m/"+s.sources[0].id+"/", http.StatusFound)
	})
	mux.HandleFunc("GET /needs", s.page("needs", s.needsPage))
	mux.HandleFunc("GET /m/{source}/{$}", s.page("fleet", s.fleetPage))
	mux.HandleFunc("GET /m/{source}/cluster/{namespace}/{name}", s.page("cluster", s.clusterPage))
	mux.HandleFunc("GET /m/{source}/object/{group}/{kind}/{namespace}/{name}", s.page("object", s.objectPage))
	mux.HandleFunc("GET /m/{source}/extensions", s.page("extensions", s.extensionsPage))
	mux.HandleFunc("GET /events", s.events)
	return mux
}

// Serve serves the page on the listener until the context ends. `slipway ui` calls it.
func (s *Server) Serve(ctx context.Context, l net.Listener, g *Guard) error {
	server := &http.Server{
		Handler: g.Protect(limitQuery(s.Handler())), ReadHeaderTimeout: headerTimeout, ReadTimeout: responseTime,
		WriteTimeout: responseTime, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	var all sync.WaitGroup
	defer all.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop() // before the wait: the listener may fail while the context is alive
	for _, source := range s.sources {
		all.Go(func() { source.Run(running) })
	}
	all.Go(func() {
		<-running.Done()
		s.hub.close()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		_ = server.Shutdown(limited)
	})
	err := server.Serve(l)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serving the page: %w", err)
}

func limitQuery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > maxQuery {
			http.Error(w, "The query is too long: shorten the filter.", http.StatusRequestURITooLong)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// request is a request for a page. [Server.Handler] creates it for the function of each page.
type request struct {
	*http.Request
	// source is nil for pages about all sources.
	source *Source
	now    time.Time
}

// page returns the handler of a page. The template gets the result of the function, or the fault that it returns.
func (s *Server) page(name string, data func(request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := request{Request: r, now: s.now()}
		position := s.hub.position()
		if id := r.PathValue("source"); id != "" {
			i := slices.IndexFunc(s.sources, func(s *Source) bool { return s.id == id })
			if i < 0 {
				s.renderError(w, q, fault.New(fault.Gone, "NoSource", "there is no management cluster %q on this page: start \"slipway ui\" with its kubeconfig", id))
				return
			}
			q.source = s.sources[i]
		}
		content, err := data(q)
		if err != nil {
			s.renderError(w, q, err)
			return
		}
		s.render(w, http.StatusOK, name, s.frame(q, name, position, content))
	}
}

func (s *Server) renderError(w http.ResponseWriter, q request, err error) {
	code := http.StatusInternalServerError
	switch fault.KindOf(err) {
	case fault.Gone:
		code = http.StatusNotFound
	case fault.Invalid:
		code = http.StatusForbidden
	case fault.Unreachable:
		code = http.StatusBadGateway
	}
	s.render(w, code, "error", s.frame(q, "error", s.hub.position(), fault.UserMessage(err)))
}

// render executes the template into a buffer first, so that a failure does not leave half a page.
func (s *Server) render(w http.ResponseWriter, code int, name string, data frame) {
	var out bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&out, "base.html", data); err != nil {
		http.Error(w, "The page could not be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = out.WriteTo(w)
}

// events serves the event stream of the page with the path in the query.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	topics := s.topicsOf(r.URL.Query().Get("page"))
	if len(topics) == 0 {
		http.Error(w, "The page has no updates: reload it.", http.StatusNotFound)
		return
	}
	s.hub.serve(w, r, topics...)
}

// topicsOf returns the topics whose changes affect a page.
func (s *Server) topicsOf(path string) []string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := range parts {
		text, err := url.PathUnescape(parts[i])
		if err != nil {
			return nil
		}
		parts[i] = text
	}
	if len(parts) == 1 && parts[0] == "needs" {
		var out []string
		for _, source := range s.sources {
			out = append(out, source.topic("fleet"))
		}
		return out
	}
	if len(parts) < 2 || parts[0] != "m" {
		return nil
	}
	i := slices.IndexFunc(s.sources, func(s *Source) bool { return s.id == parts[1] })
	if i < 0 {
		return nil
	}
	return s.sources[i].topicsOf(parts[2:])
}

func (s *Source) topicsOf(parts []string) []string {
	switch {
	case len(parts) == 0:
		return []string{s.topic("fleet")}
	case len(parts) == 1 && parts[0] == "extensions":
		return []string{s.topic("extensions")}
	case len(parts) == 3 && parts[0] == "cluster":
		return []string{s.clusterTopic(fleet.Key{Namespace: parts[1], Name: parts[2]})}
	case len(parts) == 5 && parts[0] == "object":
		of := rootcause.Ref{Group: dashToEmpty(parts[1]), Kind: parts[2], Namespace: dashToEmpty(parts[3]), Name: parts[4]}
		topics := []string{s.objectTopic(of)}
		if u, ok := s.store.Get(of); ok {
			for _, key := range s.store.ClustersOf(u) {
				topics = append(topics, s.clusterTopic(key))
			}
		}
		return topics
	}
	return nil
}

func dashToEmpty(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

func emptyToDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
