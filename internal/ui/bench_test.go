package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

func newReplicas(ready, upToDate, desired, current int32) *fleet.Replicas {
	return &fleet.Replicas{Ready: ready, UpToDate: upToDate, Desired: desired, Current: current}
}

// bigServer returns a server with a number of clusters of 11 objects, one of ten with a problem.
func bigServer(t testing.TB, clusters int) *Server {
	t.Helper()
	s := testServer(t, mirrortest.Start(t, mirrortest.Cluster("team", "first")), nil)
	for i := range clusters - 1 {
		name := fmt.Sprintf("cluster-%04d", i)
		namespace := fmt.Sprintf("team-%02d", i%20)
		text := mirrortest.Cluster(namespace, name)
		for _, u := range mirrortest.Objects(text) {
			s.sources[0].store.Put(u)
		}
		if i%10 == 0 {
			for _, u := range mirrortest.Objects(mirrortest.Broken(namespace, name, "The container of the machine does not run")) {
				s.sources[0].store.Put(u)
			}
		}
	}
	s.sources[0].refresh()
	return s
}

func get(s http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func BenchmarkFleetPage(b *testing.B) {
	s := bigServer(b, 1000)
	h := s.Handler()
	path := s.sources[0].url()
	b.ReportAllocs()
	for b.Loop() {
		b.ReportMetric(float64(get(h, path).Body.Len()), "bytes/page")
	}
}

func BenchmarkClusterPage(b *testing.B) {
	s := bigServer(b, 1000)
	h := s.Handler()
	path := s.sources[0].clusterURL("team-00", "cluster-0000")
	for b.Loop() {
		if w := get(h, path); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}

// BenchmarkChange measures the time from a change of one object until the row is computed.
func BenchmarkChange(b *testing.B) {
	s := bigServer(b, 1000)
	source := s.sources[0]
	machine := mirrortest.Objects(mirrortest.Cluster("team-00", "cluster-0000"))[5]
	for i := 0; b.Loop(); i++ {
		u := machine.DeepCopy()
		u.SetResourceVersion(fmt.Sprint(i))
		u.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "cluster-0000", "round": fmt.Sprint(i)})
		source.store.Put(u)
		source.refresh()
	}
}

// BenchmarkFirstRefresh measures the rows of 1,000 clusters, and the memory of their objects.
func BenchmarkFirstRefresh(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := bigServer(b, 1000)
	source := s.sources[0]
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		for _, row := range source.board.Clusters() {
			source.board.Touch(fleet.Key{Namespace: row.Namespace, Name: row.Name})
		}
		source.refresh()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
}

// A page of many clusters is bounded.
func TestSizeOfFleetPage(t *testing.T) {
	s := bigServer(t, 100)
	w := get(s.Handler(), s.sources[0].url())
	if perRow := w.Body.Len() / 100; perRow > 1500 {
		t.Errorf("%d bytes for each cluster", perRow)
	}
}
