
// Tells the model which background commands have ended, and after a start or a compaction which still run.
export const OutlastNews = async ({ client }) => {
  const begun = new Set()
  const event = async (name, id) => ({ hook_event_name: name, session_id: id, agent_id: await subAgent(client, id) })
  return {
    "chat.message": async (input, output) => {
      const last = output.parts.at(-1)
      if (!last) return
      const name = begun.has(input.sessionID) ? "chat.message" : "session.start"
      begun.add(input.sessionID)
      const { context } = await ask(client, await event(name, input.sessionID))
      if (!context) return
      const { sessionID, messageID } = last
      output.parts.push({ id: last.id + "z", sessionID, messageID, type: "text", text: context, synthetic: true })
    },
    "tool.execute.after": async (input, output) => {
      const text = typeof output.output === "string"
      if (!text && !Array.isArray(output.content)) return
      const { context } = await ask(client, await event("tool.execute.after", input.sessionID))
      if (!context) return
      if (text) output.output += "\n" + context
      else output.content.push({ type: "text", text: context })
    },
    "experimental.session.compacting": async (input, output) => {
      const { context } = await ask(client, await event("experimental.session.compacting", input.sessionID))
      if (context) output.context.push(context)
    },
    event: async ({ event: happened }) => {
      if (happened.type !== "session.idle") return
      const { notice } = await ask(client, await event("session.idle", happened.properties.sessionID))
      if (!notice) return
      await Promise.resolve(client.tui.showToast({ body: { message: notice, variant: "info" } })).catch(() => {})
    },
  }
}
