package repository

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonConfig is the reason when the configuration file cannot be used; Invalid.
const reasonConfig = "ClusterctlConfiguration"

// ReasonUnknownProvider is the reason when neither the file nor the built-in list has a provider; Gone.
const ReasonUnknownProvider = "UnknownProvider"

// maxConfigFileSize is the maximum size of the file in bytes.
const maxConfigFileSize = 1 << 20

// ConfigEnvironment has the inputs for reading the file and its variables. Package cli/term fills it in for
// [LoadConfig].
type ConfigEnvironment struct {
	// Lookup returns the value of an environment variable.
	Lookup func(name string) (value string, ok bool)
	// Client downloads the file from a URL; nil means [http.DefaultClient].
	Client *http.Client
}

func (e ConfigEnvironment) get(name string) string {
	value, _ := e.Lookup(name)
	return value
}

// LoadConfig reads clusterctl's configuration file: the one named by --config, or the first default file that exists.
// Without a file it returns the defaults. Package cli/term calls it for commands with that flag.
func LoadConfig(ctx context.Context, e ConfigEnvironment, flag string) (*ConfigFile, error) {
	if u, err := url.Parse(flag); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		data, err := e.download(ctx, u)
		if err != nil {
			return nil, err
		}
		return parseConfig(data, u.Host+u.Path, e)
	}
	paths := []string{flag}
	if flag == "" {
		paths = e.defaultPaths()
	}
	for _, path := range paths {
		data, err := readConfigFile(path)
		if flag == "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, reasonConfig, "the configuration file %s cannot be read (%v); specify another with --config", path, withoutPath(err)).From(err)
		}
		return parseConfig(data, path, e)
	}
	return parseConfig(nil, "", e)
}

// defaultPaths returns the default paths of the file.
func (e ConfigEnvironment) defaultPaths() []string {
	var out []string
	home := e.get("HOME")
	folder := e.get("XDG_CONFIG_HOME")
	if folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if folder != "" {
		out = append(out, filepath.Join(folder, "cluster-api"))
	}
	if home != "" {
		out = append(out, filepath.Join(home, ".cluster-api"))
	}
	var paths []string
	for _, folder := range out {
		for _, extension := range []string{".yaml", ".yml", ".json"} {
			paths = append(paths, filepath.Join(folder, "clusterctl"+extension))
		}
	}
	return paths
}

func readConfigFile(path string) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 -- the user chooses the path
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readConfigData(f)
}

func readConfigData(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxConfigFileSize+1))
	if err == nil && len(data) > maxConfigFileSize {
		err = errors.New("it is larger than 1 MiB")
	}
	return data, err
}

// withoutPath returns the error of the operating system without the path.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// download reads the file from a URL. Redirects must use https.
func (e ConfigEnvironment) download(ctx context.Context, u *url.URL) ([]byte, error) {
	if u.Scheme != "https" {
		return nil, fault.New(fault.Invalid, reasonConfig, "the URL of the configuration file at %s does not use TLS; use an https URL", u.Host)
	}
	client := http.Client{}
	if e.Client != nil {
		client = *e.Client
	}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || len(via) >= 10 {
			return fault.New(fault.Invalid, reasonConfig, "the URL of the configuration file at %s redirects to a URL without TLS, or too many times; use the final URL", u.Host)
		}
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonConfig, "the URL of the configuration file is invalid; correct --config")
	}
	resp, err := client.Do(req)
	if known := fault.As(err); known != nil {
		return nil, known
	}
	if err != nil {
		return nil, fault.New(fault.Unreachable, reasonConfig, "%s, the host of the configuration file, does not respond; check the network and --config", u.Host).From(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Invalid, reasonConfig, "%s responded with %s to the request for the configuration file; correct --config", u.Host, resp.Status)
	}
	data, err := readConfigData(resp.Body)
	if err != nil {
		return nil, fault.New(fault.Unreachable, reasonConfig, "the configuration file at %s cannot be read completely (%v); run the command again", u.Host, err).From(err)
	}
	return data, nil
}

// environmentName returns the environment variable for a variable.
func environmentName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
