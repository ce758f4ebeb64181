// Package policy is what the operator of a management cluster allows those who write objects in it.
//
// Does: reads the configuration file of `slipway up --config` and `slipway manager --config` (strictly: what it does
// not know is an error), fills in defaults, and answers the controllers' questions: may a node mount this folder, run
// this image, take this range; how many of a kind may there be. What is not allowed is denied. Answers are messages for
// the condition of the object that asked; they name the setting to change.
//
// Owns: the configuration file's format, config.slipway.dev/v1alpha1, and its defaults.
//
// Never: reads files or objects, or resolves symbolic links: who asks has done that. Admission may ask too, so that a
// person learns early; the controllers ask in any case, because an object can be there before its policy.
//
// Read first: [Configuration], then [Default].
package policy
