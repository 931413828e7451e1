// Package fleet lets workers report to each other and to tools: which breakers are not closed, which pools are full, which queues are worked.
//
// Guarantees that every [StatusStore] gives, and that the suite in fleettest proves for each:
//
//   - [StatusStore.Reports] returns what live workers said last, and nothing that is older than [Live] by the store's own clock.
//   - Times in a report that was read are the store's: a worker whose clock is wrong is not wrong about how long something lasts.
//   - A report is bounded ([MaxDestinations] and the like): what is cut is counted, and the worst is kept.
//   - A report holds no payload, no job and no secret. Destinations stand in it under their normalised names, which have neither user nor path
//     nor query.
//
// It does not promise durability: a status store may forget everything at a crash of its server, and is as it was a few seconds later. Nothing that
// decides what becomes of a job may hang on it. What workers learn of destinations that they share ([Peers]) only makes jobs wait, for a time that
// ends by itself.
package fleet
