// Package journey tells of a Machine's way from its creation to its first Ready as one OpenTelemetry trace.
//
// Does: makes the spans of a Machine from the transition times of its conditions ([Of]), so that a restart of the
// manager loses nothing, and ends the trace when the Machine is Ready for the first time ([Recorder]). The IDs of the
// trace and of its spans follow from the Machine's UID: who tells of it twice tells the same, and the passes of
// controllers over the Machine and what belongs to it are part of the same trace ([Within]).
//
// Owns: the names of the spans.
//
// Never: writes an object, or knows where spans go to.
//
// Read first: [Of].
package journey
