package foreign

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets all stories run at once: they wait for each other's API server and for nothing else.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
