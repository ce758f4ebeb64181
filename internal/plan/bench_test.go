package plan

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkRun plans a change of a class that a hundred Clusters use: a label, which is written in place.
func BenchmarkRun(b *testing.B) {
	data, err := os.ReadFile("testdata/class.yaml")
	if err != nil {
		b.Fatal(err)
	}
	docs := strings.Split(string(data), "---\n")
	n := len(docs) - 1
	clusters := docs[:n:n]
	for i := range 100 {
		clusters = append(clusters, strings.Replace(docs[n], "name: second", fmt.Sprintf("name: c%03d", i), 1))
	}
	p, rest, err := Run(b.Context(), options(b), snapshot(b), Change{Apply: read(b, strings.Join(clusters, "---\n"))})
	if err != nil || len(p.Refused) > 0 || !p.Settled {
		b.Fatalf("%v %+v", err, p.Refused)
	}
	change := Change{Apply: read(b, strings.Replace(docs[0], "tier: worker", "tier: other", 1))}
	for b.Loop() {
		p, _, err := Run(b.Context(), options(b), rest, change)
		if err != nil || len(p.Clusters) < 100 {
			b.Fatalf("%v, %d clusters", err, len(p.Clusters))
		}
	}
}
