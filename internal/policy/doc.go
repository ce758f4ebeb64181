// Package policy defines the restrictions that the operator of a management cluster places on users who write
// objects in it. It parses the configuration file of `slipway up --config` and `slipway manager --config`,
// rejects unknown fields, fills in defaults, and decides whether a node may mount a folder, run an image or
// use a range, and how many objects of a kind may exist. Everything that the configuration does not permit is
// denied. The results are messages for conditions, which name the setting to change. The package owns the
// file format config.slipway.dev/v1alpha1 and its defaults. It reads no files or objects and resolves no
// symbolic links; callers do. Admission calls it to give users early feedback, but controllers always call it
// as well, because an object can be older than the policy. Start at [Configuration] and [Default].
package policy
