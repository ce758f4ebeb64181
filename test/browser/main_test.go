package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the pictures of docs/ui.md")

// startLimit is the time in which the browser has to start.
const startLimit = 2 * time.Minute

// chromium is the running browser of all tests, or nil if the tests are skipped.
var chromium context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("SLIPWAY_BROWSER") == "" {
		os.Exit(m.Run())
	}
	stop, err := startChromium()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

func startChromium() (func(), error) {
	program, err := findChromium()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.WSURLReadTimeout(startLimit),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // the sandbox does not start as root
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, stop := chromedp.NewContext(allocator)
	if err := chromedp.Run(browser); err != nil {
		stopAllocator()
		return nil, fmt.Errorf("%s does not start: %w", program, err)
	}
	chromium = browser
	return func() { stop(); stopAllocator() }, nil
}

func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the tests of the page need Chromium, which is not installed: install the package chromium, for example with \"apt-get install chromium\"")
}
