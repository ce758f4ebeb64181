package browser

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Limits for slow and shared machines. The test logs what was measured.
const (
	maxServerTime = 3 * time.Second
	maxPageBytes  = 1_500_000
	maxDelay      = 10 * time.Second
)

// The page of 1,000 clusters, one of ten with a problem, is small, fast and live.
func TestThousandClusters(t *testing.T) {
	api := newAPI(t)
	good, bad := healthy(), broken()
	for i := range 1000 {
		namespace, name := fmt.Sprintf("team-%02d", i%20), fmt.Sprintf("cluster-%04d", i)
		put(api, good.objects(namespace, name, "")...)
		if i%10 == 0 {
			put(api, bad.objects(namespace, name, "The container of the machine does not run")...)
		}
	}
	w := serve(t, api)
	began := time.Now()
	p := w.open(t)
	p.until("all rows are shown", `document.querySelectorAll("table.fleet tbody tr").length === 1000`)
	t.Logf("all rows are visible %s after the server started", time.Since(began).Round(time.Millisecond))

	times, size := w.measure(t, fleetPath, 9)
	t.Logf("the fleet page takes %s of server time (the fastest %s, the slowest %s) and has %d kB", times[4], times[0], times[8], size/1000)
	if times[4] > maxServerTime || size > maxPageBytes {
		t.Errorf("the limits are %s and %d kB", maxServerTime, maxPageBytes/1000)
	}

	for i := range 5 {
		text := fmt.Sprintf("change %d", i)
		objects := bad.objects("team-07", "cluster-0407", text)
		began := time.Now()
		put(api, objects...)
		p.until("the change is visible", `document.getElementById("r-team-07_cluster-0407").textContent.includes("`+text+`")`)
		delay := time.Since(began)
		t.Logf("%s is visible after %s", text, delay.Round(time.Millisecond))
		if delay > maxDelay {
			t.Errorf("the limit is %s", maxDelay)
		}
	}

	began = time.Now()
	p.do("typing", chromedp.SendKeys("#q", "cluster-0407"))
	p.until("one row remains", `document.querySelectorAll("table.fleet tbody tr").length === 1`)
	t.Logf("a filter shows its row %s after the first key", time.Since(began).Round(time.Millisecond))
}

// measure gets a page a number of times, and returns the sorted times until the whole body was received, and its size.
func (w *world) measure(t *testing.T, path string, n int) (times []time.Duration, size int) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: limit}
	get := func(url string) []byte {
		response, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, response.Status, err)
		}
		return body
	}
	get(w.first)
	for range n {
		began := time.Now()
		size = len(get(w.base + path))
		times = append(times, time.Since(began).Round(time.Microsecond))
	}
	slices.Sort(times)
	return times, size
}
