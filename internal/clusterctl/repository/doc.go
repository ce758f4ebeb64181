// Package repository reads the releases of providers, wherever they are published.
//
// Does: lists versions, chooses the latest of a contract, and reads the files of a release. The URL of a provider says
// which kind of repository it is:
//
//	file, absolute path       BASE/LABEL/VERSION/FILE
//	https://github.com        /OWNER/PROJECT/releases/VERSION/FILE: versions from the Go module proxy, or from GitHub's API
//	https, GitLab's API       /api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE
//	https, anything else      …/VERSION/FILE
//	oci                       REGISTRY/REPOSITORY[:VERSION]: each tag is a version, each layer with a title is a file
//
// VERSION may be "latest" where versions can be listed: files, GitHub and OCI. A file that lies in the folder of
// overrides takes the place of the repository's; which versions there are is the repository's to say.
//
// A version is chosen so:
//
//	someone named one                            that one
//	the URL names one                            that one
//	latest, a series has the wanted contract     the latest release of the newest such series
//	latest, a series has a compatible contract   the latest release of the newest such series
//	latest, no series has one                    an error with the contracts that there are
//
// Releases come before pre-releases, a tag without metadata.yaml is no release.
//
// What comes over a network is bounded in size and time, is read over https alone (http only from this machine, and never
// after a redirect from https), and no credentials follow a redirect to another host.
//
// Owns: the validation of metadata.yaml.
//
// Never: writes to a repository; changes what it read; puts a token or the query of a URL into an error.
//
// Read first: [Open], then [Source].
package repository
