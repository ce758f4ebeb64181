// Package repository reads provider releases from the repositories where they are published. It lists versions, selects
// the latest release with a contract, and reads the files of a release. The URL of the provider determines the kind of
// repository:
//
//	file, absolute path       BASE/LABEL/VERSION/FILE
//	https://github.com        /OWNER/PROJECT/releases/VERSION/FILE: versions from the Go module proxy, or from GitHub's API
//	https, GitLab's API       /api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE
//	https, anything else      …/VERSION/FILE
//	oci                       REGISTRY/REPOSITORY[:VERSION]: each tag is a version, each layer with a title is a file
//
// VERSION may be "latest" if the repository can list versions: files, GitHub and OCI. A file in the overrides folder
// replaces the file of the repository, but does not add a version. The version is selected as follows:
//
//	the user specifies a version                  this version
//	the URL specifies a version                   this version
//	latest, a series has the requested contract   the latest release of the newest such series
//	latest, a series has a compatible contract    the latest release of the newest such series
//	latest, no series has either                  an error that lists the available contracts
//
// Releases take precedence over pre-releases. A tag without metadata.yaml is not a release.
//
// Downloads are limited in size and time, and use https only (http only from this machine, and never after a redirect
// from https). Credentials are not sent to another host after a redirect. Errors never contain a token or the query of
// a URL.
package repository
