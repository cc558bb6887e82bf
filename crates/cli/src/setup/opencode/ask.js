// Written by `outlast setup opencode`, which also takes it away again (--undo). Changes in it are lost.
import { spawn } from "node:child_process"

// Asks `outlast hook opencode` about an event. Whatever goes wrong, the answer is empty and opencode goes on.
const ask = (client, event, args = []) =>
  new Promise((resolve) => {
    const say = (message) => {
      Promise.resolve(client.app.log({ body: { service: "outlast", level: "warn", message } })).catch(() => {})
      resolve({})
    }
    const child = spawn("outlast", ["hook", "opencode", ...args], { stdio: "pipe", timeout: 10000 })
    let out = "", err = ""
    child.stdout.on("data", (piece) => (out += piece))
    child.stderr.on("data", (piece) => (err += piece))
    child.stdin.on("error", () => {})
    child.on("error", (error) => say(String(error)))
    child.on("close", () => {
      if (err) say(err)
      try {
        resolve(out ? JSON.parse(out) : {})
      } catch (error) {
        say(String(error))
      }
    })
    child.stdin.end(JSON.stringify(event))
  })

// The id of a sub-agent: a conversation that belongs to another one.
const subAgent = async (client, id) => {
  try {
    const found = await client.session.get({ path: { id } })
    return found.data?.parentID ? id : undefined
  } catch {
    return undefined
  }
}
