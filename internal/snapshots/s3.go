package snapshots

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// partBytes is the size of the parts of an upload. One part is held in memory.
	partBytes = 16 << 20
	// responseTimeout limits waiting for the headers of a response.
	responseTimeout = 30 * time.Second
)

// s3Config configures the connection to an S3-compatible store. [StoreSettings.Open] fills it in from the policy and
// the Secret with the credentials.
type s3Config struct {
	// Endpoint is the host of the store, with a port if it is not the default. Required.
	Endpoint string
	// Insecure uses HTTP instead of HTTPS.
	Insecure bool
	// CA contains CA certificates in PEM form for the store's certificate. It defaults to the CAs of the host.
	CA []byte
	// Bucket must exist already. Required.
	Bucket string
	// Prefix is an optional prefix of all names.
	Prefix string
	// Region of the bucket. Default: us-east-1.
	Region string
	// AccessKeyID and SecretAccessKey are the credentials. Required.
	AccessKeyID, SecretAccessKey string
}

// bucket is a store in an S3 bucket. Its methods implement [Store].
type bucket struct {
	client *minio.Client
	name   string
	prefix string
}

// newS3 returns a store in a bucket, for a policy with spec.destination.s3. It only connects to the endpoint and does
// not follow redirects to other hosts, because the operator allows endpoints by name. [StoreSettings.Open] calls it.
func newS3(cfg s3Config) (Store, error) {
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	if cfg.AccessKeyID == "" || cfg.SecretAccessKey == "" {
		return nil, fault.New(fault.Invalid, reasonRefused, "The store has no keys: the Secret needs accessKeyID and secretAccessKey")
	}
	transport, err := endpointTransport(cfg)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(cfg.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(cfg.AccessKeyID, cfg.SecretAccessKey, ""), Secure: !cfg.Insecure, Region: cfg.Region,
		BucketLookup: minio.BucketLookupPath, Transport: transport, MaxRetries: 3,
	})
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonUnreachable, "The endpoint %q of the store is not valid: use a host, with a port if it is not the default", cfg.Endpoint).From(err)
	}
	return bucket{client: client, name: cfg.Bucket, prefix: strings.Trim(cfg.Prefix, "/")}, nil
}

// endpointTransport returns a transport that only connects to the endpoint, because the operator's configuration does
// not allow the targets of redirects.
func endpointTransport(cfg s3Config) (http.RoundTripper, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(cfg.CA) > 0 {
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(cfg.CA) {
			return nil, fault.New(fault.Invalid, reasonUnreachable, "spec.destination.s3.certificateAuthority has no certificate in PEM form")
		}
	}
	allowed := cfg.Endpoint
	if _, _, err := net.SplitHostPort(allowed); err != nil {
		port := "443"
		if cfg.Insecure {
			port = "80"
		}
		allowed = net.JoinHostPort(strings.Trim(allowed, "[]"), port)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != allowed {
				return nil, fault.New(fault.Invalid, reasonRefused, "The store sends to another address than its endpoint")
			}
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: responseTimeout, MaxIdleConns: 2, IdleConnTimeout: 10 * time.Second,
		DisableCompression: true, TLSClientConfig: secure,
	}, nil
}

func (b bucket) key(name string) string { return path.Join(b.prefix, name) }

func (b bucket) Write(ctx context.Context, name string, r io.Reader, most int64) error {
	if err := clean(name); err != nil {
		return err
	}
	counted := &counter{from: limitReader(ctx, r, most)}
	info, err := b.client.PutObject(ctx, b.name, b.key(name), counted, -1, minio.PutObjectOptions{PartSize: partBytes, NumThreads: 1, ContentType: "application/octet-stream"})
	if err != nil {
		return asS3(name, err)
	}
	if info.Size != counted.bytes {
		_ = b.Delete(ctx, name)
		return fault.New(fault.Unreachable, reasonUnreachable, "The store has taken %d bytes of %s, which has %d", info.Size, name, counted.bytes)
	}
	return nil
}

// counter counts the bytes read.
type counter struct {
	from  io.Reader
	bytes int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.bytes += int64(n)
	return n, err
}

func (b bucket) Read(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := clean(name); err != nil {
		return nil, err
	}
	object, err := b.client.GetObject(ctx, b.name, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, asS3(name, err)
	}
	if _, err := object.Stat(); err != nil {
		_ = object.Close()
		return nil, asS3(name, err)
	}
	return object, nil
}

func (b bucket) List(ctx context.Context, below string) ([]File, error) {
	if err := clean(below); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx) // stops the listing goroutine on an early return
	defer stop()
	var out []File
	for found := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.key(below) + "/", Recursive: true}) {
		if found.Err != nil {
			return nil, asS3(below, found.Err)
		}
		if len(out) == maxListed {
			return nil, tooMany(below)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(found.Key, b.prefix), "/")
		if clean(name) != nil {
			continue
		}
		out = append(out, File{Name: name, Bytes: found.Size, Modified: found.LastModified})
	}
	return out, nil
}

func (b bucket) Delete(ctx context.Context, name string) error {
	if err := clean(name); err != nil {
		return err
	}
	return asS3(name, b.client.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{}))
}

func (b bucket) Tidy(ctx context.Context, below string, before time.Time) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for found := range b.client.ListIncompleteUploads(ctx, b.name, b.key(below)+"/", true) {
		if found.Err != nil {
			return asS3(below, found.Err)
		}
		if found.Initiated.Before(before) {
			if err := b.client.RemoveIncompleteUpload(ctx, b.name, found.Key); err != nil {
				return asS3(below, err)
			}
		}
	}
	return nil
}

// asS3 converts an S3 error to a fault. The message contains the error code only, because the response text comes
// from an untrusted endpoint.
func asS3(name string, err error) error {
	return asStoreFault(err, func() error {
		answer := minio.ToErrorResponse(err)
		switch {
		case answer.Code == minio.NoSuchKey:
			return missingFault(name, err)
		case answer.Code == minio.NoSuchBucket:
			return fault.New(fault.Invalid, reasonRefused, "The store has no bucket of this name: create it, or correct spec.destination.s3.bucket").From(err)
		case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
			return fault.New(fault.Invalid, reasonRefused, "The store refuses the keys: correct the Secret that spec.destination.s3.credentialsSecretName names, or what its keys may do with the bucket").From(err)
		case answer.StatusCode == http.StatusInsufficientStorage:
			return fault.New(fault.Transient, reasonFull, "The store is full: keep fewer snapshots, or give it more space").From(err)
		case answer.StatusCode >= 300 && answer.StatusCode < 400:
			return fault.New(fault.Invalid, reasonRefused, "The store sends to another address than its endpoint: correct spec.destination.s3.endpoint or region").From(err)
		case answer.StatusCode >= 400 && answer.StatusCode < 500:
			return fault.New(fault.Invalid, reasonRefused, "The store refuses with HTTP status %d", answer.StatusCode).From(err)
		}
		return fault.New(fault.Unreachable, reasonUnreachable, "The store does not respond, retrying").From(err)
	})
}
