package browser

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/test/mirrortest"
)

// Goals of the process of "slipway ui" with 1,000 clusters on a quiet machine.
const (
	goalServerTime = 300 * time.Millisecond
	goalUpdate     = time.Second
	goalMemory     = 250 // MB of resident memory
	goalCPU        = 1.0 // % of one core without changes
	idleTime       = time.Minute
)

// TestProcess measures the process of "slipway ui" with 1,000 clusters of 11 objects, one of ten with a problem. It needs no
// browser. "make bench-ui" runs it.
func TestProcess(t *testing.T) {
	program := os.Getenv("SLIPWAY_BENCH_UI")
	if program == "" {
		t.Skip("make bench-ui runs this measurement")
	}
	api := mirrortest.Start(t, "")
	api.Stream()
	bad := broken()
	for i, healthy := 0, healthy(); i < 1000; i++ {
		namespace, name := fmt.Sprintf("team-%02d", i%20), fmt.Sprintf("cluster-%04d", i)
		put(api, withManagedFields(healthy.objects(namespace, name, ""))...)
		if i%10 == 0 {
			put(api, withManagedFields(bad.objects(namespace, name, "The container of the machine does not run"))...)
		}
	}
	w, process := startProcess(t, program, api)
	r := newReader(t, w)
	r.until(func(body string) bool { return strings.Count(body, `<tr id="r-team-`) == 1000 })
	t.Logf("memory after the start: %d MB", process.memory(t))

	times, size := w.measure(t, processPath, 9)
	t.Logf("fleet page: %s of server time (the fastest %s, the slowest %s), %d kB; the goals are %s and %d kB%s", times[4], times[0], times[8], size/1000, goalServerTime, maxPageBytes/1000,
		missed(times[4] > goalServerTime || size > maxPageBytes))
	for i := range 5 {
		text := fmt.Sprintf("change %d", i)
		began := time.Now()
		put(api, bad.objects("team-07", "cluster-0407", text)...)
		r.until(func(body string) bool { return strings.Contains(body, text) })
		delay := time.Since(began)
		t.Logf("update %d: %s until the page has it; the goal is %s%s", i, delay.Round(time.Millisecond), goalUpdate, missed(delay > goalUpdate))
	}

	t.Logf("waiting %s without a change", idleTime)
	before, began := process.cpu(t), time.Now()
	time.Sleep(idleTime) // the measurement itself
	cpu := 100 * (process.cpu(t) - before) / time.Since(began).Seconds()
	memory := process.memory(t)
	t.Logf("without a change: %.2f %% of a core, %d MB; the goals are %.0f %% and %d MB%s", cpu, memory, goalCPU, goalMemory, missed(cpu > goalCPU || memory > goalMemory))
}

// missed returns a remark about a missed goal, which is no error, because a busy machine misses it.
func missed(is bool) string {
	if is {
		return ": MISSED"
	}
	return ""
}

// processPath is the fleet page of the process.
const processPath = "/m/fleet/"

// withManagedFields adds managed fields as API servers do. They are several kilobytes, which the page reads and does not store.
func withManagedFields(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, u := range objects {
		u.Object["metadata"].(map[string]any)["managedFields"] = managedFields // shared, because they do not change
	}
	return objects
}

var managedFields = func() []any {
	fields := map[string]any{}
	for i := range 60 {
		fields[fmt.Sprintf("f:field%02d", i)] = map[string]any{".": map[string]any{}, "f:lastTransitionTime": map[string]any{}}
	}
	return []any{map[string]any{"manager": "manager", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}}
}()

// reader reads the fleet page after each event, as the script of the page does.
type reader struct {
	t      *testing.T
	client *http.Client
	base   string
	events *bufio.Scanner
}

func newReader(t *testing.T, w *world) *reader {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check(t, err)
	r := &reader{t: t, client: &http.Client{Jar: jar}, base: w.base}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r.get(ctx, w.first)
	stream := r.open(ctx, r.base+"/events?page="+processPath)
	r.events = bufio.NewScanner(stream.Body)
	return r
}

func (r *reader) open(ctx context.Context, url string) *http.Response {
	r.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	check(r.t, err)
	response, err := r.client.Do(request)
	check(r.t, err)
	if response.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %s", url, response.Status)
	}
	return response
}

func (r *reader) get(ctx context.Context, url string) string {
	r.t.Helper()
	response := r.open(ctx, url)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	check(r.t, err)
	return string(body)
}

// until reads the page after each event until it has what is expected.
func (r *reader) until(expected func(body string) bool) {
	r.t.Helper()
	for !expected(r.get(context.Background(), r.base+processPath)) {
		for r.events.Scan() && r.events.Text() != "event: change" {
		}
		if r.events.Err() != nil || r.events.Text() != "event: change" {
			r.t.Fatalf("the events ended: %v", r.events.Err())
		}
	}
}

// uiProcess is a running "slipway ui".
type uiProcess struct{ procfs.Proc }

// startProcess starts the program for a management cluster named fleet, until the test ends.
func startProcess(t *testing.T, program string, api *mirrortest.API) (*world, uiProcess) {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["m"] = &clientcmdapi.Cluster{Server: api.URL}
	kubeconfig.Contexts["m"] = &clientcmdapi.Context{Cluster: "m"}
	kubeconfig.CurrentContext = "m"
	path := filepath.Join(t.TempDir(), "fleet.kubeconfig")
	check(t, clientcmd.WriteToFile(*kubeconfig, path))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "ui", "--kubeconfig", path)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME="+t.TempDir())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("slipway ui printed no address: %v, %s", err, problems.String())
	}
	process, err := procfs.NewProc(cmd.Process.Pid)
	check(t, err)
	first = strings.TrimSpace(first)
	base, _, _ := strings.Cut(first, "/?")
	return &world{api: api, first: first, base: base}, uiProcess{process}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memory returns the resident memory in MB.
func (p uiProcess) memory(t *testing.T) int {
	t.Helper()
	stat, err := p.Stat()
	check(t, err)
	return stat.ResidentMemory() / 1e6
}

// cpu returns the CPU time since the start in seconds.
func (p uiProcess) cpu(t *testing.T) float64 {
	t.Helper()
	stat, err := p.Stat()
	check(t, err)
	return stat.CPUTime()
}
