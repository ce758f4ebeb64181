package repository

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// titleAnnotation is the annotation of a layer with its file name.
const titleAnnotation = "org.opencontainers.image.title"

// oci implements [Repository] with artifacts in a registry: a tag for each version, a layer for each file.
type oci struct {
	repository    name.Repository
	version, file string
	options       []remote.Option
}

// newOCI parses the URL of a registry. open (repository.go) calls it.
func newOCI(p provider.Provider, o Options) (Repository, error) {
	address := strings.TrimPrefix(p.URL, "oci://")
	if strings.ContainsAny(address, "@?#") {
		return nil, invalidURLError(p, "write it as oci://REGISTRY/REPOSITORY:VERSION, without credentials, digests and queries")
	}
	version := latestVersion
	if slash, colon := strings.LastIndex(address, "/"), strings.LastIndex(address, ":"); colon > slash {
		address, version = address[:colon], address[colon+1:]
	}
	repository, err := name.NewRepository(address, name.StrictValidation)
	if err != nil || !isSegment(version) {
		return nil, invalidURLError(p, "write it as oci://REGISTRY/REPOSITORY:VERSION; VERSION may be latest")
	}
	keychain := o.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	return oci{repository: repository, version: version, file: p.Type.ComponentsFile(), options: []remote.Option{
		remote.WithTransport(o.transport()), remote.WithAuthFromKeychain(keychain), remote.WithUserAgent("slipway"),
	}}, nil
}

func (o oci) DefaultVersion() string { return o.version }

func (o oci) ComponentsFile() string { return o.file }

func (o oci) Versions(ctx context.Context) ([]string, error) {
	tags, err := remote.List(o.repository, o.optionsFor(ctx)...)
	return tags, o.explain(err, "", "")
}

func (o oci) optionsFor(ctx context.Context) []remote.Option {
	return append([]remote.Option{remote.WithContext(ctx)}, o.options...)
}

func (o oci) File(ctx context.Context, version, file string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	artifact, err := remote.Image(o.repository.Tag(version), o.optionsFor(ctx)...)
	if err != nil {
		return nil, o.explain(err, version, file)
	}
	manifest, err := artifact.Manifest()
	if err != nil {
		return nil, o.explain(err, version, file)
	}
	for _, layer := range manifest.Layers {
		if layer.Annotations[titleAnnotation] == file {
			data, err := o.layer(ctx, layer, version, file)
			return data, o.explain(err, version, file)
		}
	}
	return nil, notFound(o.repository.String(), version, file)
}

// layer reads a layer and verifies its digest.
func (o oci) layer(ctx context.Context, of v1.Descriptor, version, file string) ([]byte, error) {
	what := o.repository.String() + ":" + version + " " + file
	if of.Size > maxFile {
		return nil, tooLarge(what)
	}
	layer, err := remote.Layer(o.repository.Digest(of.Digest.String()), o.optionsFor(ctx)...)
	if err != nil {
		return nil, err
	}
	content, err := layer.Compressed() // as stored
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	return readAll(content, what)
}

// explain converts an error of a registry to a fault.
func (o oci) explain(err error, version, file string) error {
	if err == nil || fault.As(err) != nil || errors.Is(err, context.Canceled) {
		return err
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return fault.New(fault.Unreachable, reasonUnreachable, "reading from %s failed (%v); check the network, then run the command again", o.repository, innermostError(err)).From(err)
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		if version == "" {
			return fault.New(fault.Gone, reasonNotFound, "the repository %s does not exist; check the url of the provider", o.repository).From(err)
		}
		return notFound(o.repository.String(), version, file)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.New(fault.Invalid, reasonCredentials, "the registry %s denied access to %s (%d); log in with docker login %s", o.repository.RegistryStr(), o.repository.RepositoryStr(), answer.StatusCode, o.repository.RegistryStr()).From(err)
	case http.StatusTooManyRequests:
		return fault.New(fault.Unreachable, reasonRateLimited, "the rate limit of the registry %s is exceeded; log in, or run the command again later", o.repository.RegistryStr()).From(err)
	}
	return fault.New(fault.Unreachable, reasonUnreachable, "the registry %s responded with %d; run the command again later", o.repository.RegistryStr(), answer.StatusCode).From(err)
}

// innermostError returns the innermost error. The outer errors repeat URLs, which may contain signatures.
func innermostError(err error) error {
	inner := err
	for inner != nil {
		err, inner = inner, errors.Unwrap(inner)
	}
	return err
}
